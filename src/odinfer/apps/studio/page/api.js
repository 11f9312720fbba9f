// What the page says to the server. A tab has a session of its own, which its storage remembers over a reload.

import { save } from "./picture.js";

const KEY = "odinfer-session";
let session = sessionStorage.getItem(KEY);

export class Refused extends Error {}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Refused("The studio does not answer any longer; start it again in the terminal, and open its new link.");
  }
}

async function send(method, path, body, headers = {}) {
  const raw = body instanceof Blob;
  const response = await reach(path, {
    method,
    headers: { "X-Session": session ?? "", ...(body && !raw ? { "Content-Type": "application/json" } : {}), ...headers },
    body: body === undefined || raw ? body : JSON.stringify(body),
  });
  if (response.ok) return response;
  let words = `the studio answers ${response.status}`;
  const text = await response.text();
  try { words = JSON.parse(text).error ?? words; } catch { words = text.trim() || words; }
  const error = new Refused(words);
  error.status = response.status;
  throw error;
}

const json = async (...args) => (await send(...args)).json();

/** What this tab had before, or a new session. */
export async function begin() {
  if (session) {
    try { return await json("GET", "/api/session"); } catch (error) { if (error.status !== 410) throw error; }
  }
  await renew();
  return json("GET", "/api/session");
}

export async function renew() {
  session = (await json("POST", "/api/session", {})).id;
  sessionStorage.setItem(KEY, session);
}

export const upload = (file) => json("POST", "/api/data", file, { "X-Name": encodeURIComponent(file.name) });
export const thumbnail = (name) => json("GET", `/api/examples/${encodeURIComponent(name)}`);
/** leave: whether what is on the page stays as a project of its own. */
export const example = (name, leave) => json("POST", "/api/example", { name, leave });

/** An SBML model, or a PEtab problem: its files, or an archive of them. */
export async function convert(files, leave) {
  const content = await Promise.all(files.map(async (file) => [file.path ?? file.name, await base64(file)]));
  return json("POST", "/api/convert", { files: Object.fromEntries(content), leave });
}

function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(new Refused(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}

export const table = (choice) => json("POST", "/api/table", choice);
export const understand = (name, text, choice) => json("POST", "/api/understand", { name, text, choice });
export const guess = (name, text, choice) => json("POST", "/api/guess", { name, text, choice });
export const loglik = (name, text, choice, values) => json("POST", "/api/loglik", { name, text, choice, values });
export const order = (kind, models, choice, options = {}) => json("POST", "/api/jobs", { kind, models, choice, options });
export const cancel = (id) => json("DELETE", `/api/jobs/${id}`);

/** Everything a job tells until it ends. */
export async function* follow(id) {
  const response = await send("GET", `/api/jobs/${id}/stream`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

/** All of this tab as a file; a project opened in its place: a file, or the key of one that was saved by itself. */
export async function saveProject(name) { save(await (await send("GET", "/api/project")).blob(), name); }
export const openProject = (file, key = "") => json("POST", "/api/project", file ?? new Blob([]), { "X-Project": key });

/** Whether the studio answers, asked every few seconds; told when that changes. */
export function heartbeat(told) {
  let alive = true;
  setInterval(async () => {
    if (document.hidden) return;
    const now = await fetch("/api/alive", { cache: "no-store" }).then((r) => r.ok, () => false);
    if (now !== alive) told(alive = now);
  }, 3000);
}

const file = async (id, name) => (await send("GET", `/api/jobs/${id}/files/${encodeURIComponent(name)}`)).blob();

export async function download(id, name) { save(await file(id, name), name); }

const addresses = new Map();

/** The address of a picture among the files of a job, which is fetched once. */
export function pictureAddress(id, name) {
  const key = `${id}/${name}`;
  if (!addresses.has(key)) addresses.set(key, file(id, name).then((found) => URL.createObjectURL(new Blob([found], { type: "image/svg+xml" }))));
  return addresses.get(key);
}

/** What may not have arrived is sent once more. */
export function again(page) { last = ""; keep(page, true); }

let waiting = null, last = "";

/** Remember the page, soon; `now` when it may be about to go: then a promise of its end. */
export function keep(page, now = false) {
  const text = JSON.stringify(page);
  clearTimeout(waiting);
  if (text === last || !session) return;
  const write = () => {
    last = text;
    return fetch("/api/page", { method: "PUT", keepalive: now && text.length < 60000, headers: { "X-Session": session }, body: text })
      .catch(() => { last = ""; });  // whatever is asked for next says that nobody answers
  };
  if (now) return write();
  waiting = setTimeout(write, 300);
}
