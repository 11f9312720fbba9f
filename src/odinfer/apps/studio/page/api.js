// What the page says to the server. A tab has a session of its own, which its storage remembers over a reload.

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
export const example = (name) => json("POST", "/api/example", { name });
export const table = (choice) => json("POST", "/api/table", choice);
export const understand = (name, text, choice) => json("POST", "/api/understand", { name, text, choice });
export const guess = (name, text, choice) => json("POST", "/api/guess", { name, text, choice });
export const order = (kind, models, choice) => json("POST", "/api/jobs", { kind, models, choice });
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

export async function download(id, name) {
  const blob = await (await send("GET", `/api/jobs/${id}/files/${encodeURIComponent(name)}`)).blob();
  save(blob, name);
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

let waiting = null, last = "";

/** Remember the page, soon; `now` when it may be about to go. */
export function keep(page, now = false) {
  const text = JSON.stringify(page);
  clearTimeout(waiting);
  if (text === last || !session) return;
  const write = () => {
    last = text;
    fetch("/api/page", { method: "PUT", keepalive: now && text.length < 60000, headers: { "X-Session": session }, body: text })
      .catch(() => { last = ""; });  // whatever is asked for next says that nobody answers
  };
  if (now) write(); else waiting = setTimeout(write, 300);
}
