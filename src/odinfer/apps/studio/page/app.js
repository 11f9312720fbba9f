// The page as a whole: what there is (`page`, which survives a reload), and what happens when something changes.
import * as api from "./api.js";
import { Chart, at, colour, range, shown, widened } from "./charts.js";
import { MEASURES, columnBox, reassigned } from "./columns.js";
import { Editor, element, patient } from "./editor.js";
import { LETTERS, bestIntervals, clear, files, showComparison, showFit } from "./results.js";
import { keysOf, rowsOf } from "./rows.js";
import { Sliders } from "./sliders.js";
import { asName, firstModel, withBounds, withDistribution, withFixed, withLocal, withLog, withStart } from "./statements.js";

const $ = (id) => document.getElementById(id);
const WORKING = ["waiting", "running", "writing"];

/** What is remembered: models with their texts, values of sliders and jobs; what was chosen about columns. */
let page = { models: [], current: 0, choice: { time: null, names: {}, sd: {} }, experiment: "", compared: null, showing: "fit" };
let dataName = null;  // of the file, if there is one
let table = null;     // its columns and everything that can be drawn of it
let u = null;         // what the server has understood of the current model
let curves = [];      // what the sliders give
const jobs = new Map();

const model = () => page.models[page.current];
const experiments = () => (u?.experiments ?? []).map((e) => e.name);
const keep = (now = false) => api.keep(page, now);

function complain(error) {
  $("message").hidden = !error;
  $("message").firstElementChild.textContent = error ? error.message ?? String(error) : "";
}

const guarded = (action) => async (...args) => {
  try { complain(null); return await action(...args); } catch (error) { complain(error); }
};

// --- beginning

const editor = new Editor($("editor"), (text) => {
  model().text = text;
  soon();
});
const sliders = new Sliders($("sliders"), {
  moved(keys, value, redraw = false) {
    for (const key of keys) model().values[key] = value;
    model().moved = true;
    if (redraw) drawSliders();
    follow();
    keep();
  },
  value: (key) => model().values[key],
  size: (key) => said("sizes", key) ?? 0,
  several: () => experiments().length > 1,
  bounded: (name, low, high) => rewrite(withBounds(model().text, name, low, high)),
  fixed: (name, value) => rewrite(withFixed(model().text, name, value)),
  started: (name, value) => rewrite(withStart(model().text, name, value)),
  scaled: (name, log) => rewrite(withLog(model().text, name, log)),
  spread: (name, local) => rewrite(withLocal(model().text, name, local)),
  distributed: (name, words) => rewrite(withDistribution(model().text, name, words)),
});

function rewrite(text) {
  model().text = text;
  editor.text = text;
  understand();
}

let timer = null;
function soon() {
  clearTimeout(timer);
  timer = setTimeout(understand, 120);
  keep();
}

async function start() {
  const found = await api.begin();
  $("examples").replaceChildren(...found.examples.map(exampleButton));
  dataName = found.data;
  if (found.page.models || found.data) {
    page = { ...page, ...found.page };
    for (const m of page.models) m.values ??= {};
    for (const job of found.jobs) adopt(job);
    await open();
    const running = found.jobs.find((job) => WORKING.includes(job.state));
    if (running) watch(running);
  } else {
    document.body.dataset.view = "welcome";
  }
}

function exampleButton({ name, title }) {
  const item = element("li"), button = item.appendChild(element("button"));
  button.type = "button";
  const [what, more] = title.split(/[:,;]\s(.*)/s);
  button.append(element("b", "", what), element("span", "", more ?? ""));
  button.addEventListener("click", guarded(async () => {
    const found = await api.example(name);
    begun(found, [{ name: found.model, text: found.text, values: {} }]);
    await open();
  }));
  return item;
}

function begun(found, models) {
  dataName = found.name;
  table = found;
  Object.assign(page, { models, current: 0, choice: { time: null, names: {}, sd: {} }, experiment: "", compared: null, showing: "fit" });
  sliders.ranges = {};
}

const take = guarded(async (file) => {
  if (file.name.toLowerCase().endsWith(".ode")) {
    const text = await file.text(), name = file.name.replace(/\.ode$/i, "");
    page.models.push({ name: unique(name), text, values: {} });
    page.current = page.models.length - 1;
    return open();
  }
  const found = await api.upload(file);
  const had = page.models;
  begun(found, []);
  const columns = freeColumns();
  page.models = had.length && had.some((m) => columns.some((c) => new RegExp(`(^|\\W)${c.name.replace(/\W/g, "\\$&")}(\\W|$)`, "u").test(m.text)))
    ? had.map((m) => ({ ...m, job: null, guess: null })) : [firstGuess(columns)];
  await open();
});

const freeColumns = () => table.columns.filter((c) => !c.role && c.cells.some((cell) => /\d/.test(cell)));

function firstGuess(columns) {
  for (const { name } of columns) if (asName(name) !== name) page.choice.names[name] = asName(name);
  return { name: "model", text: firstModel(columns.map((c) => c.name)), values: {} };
}

async function open() {
  document.body.dataset.view = "workspace";
  scrollTo(0, 0);
  $("file-name").textContent = dataName ?? "no data yet";
  if (dataName && (!table || page.choice.time || Object.keys(page.choice.names).length)) await readTable();
  if (!page.models.length) page.models = [table ? firstGuess(freeColumns()) : { name: "model", text: "x' = -k*x\n", values: {} }];
  page.current = Math.min(page.current, page.models.length - 1);
  await show();
}

async function readTable() {
  try { table = await api.table({ ...page.choice, names: {} }); } catch (error) { complain(error); }
}

/** Everything about the current model. */
async function show() {
  u = null;
  curves = [];
  drawTabs();
  editor.mark(null, []);
  editor.text = model().text;
  $("model-name").value = model().name;
  drawColumns();
  await understand();
}

// --- understanding

let asked = 0;
async function understand() {
  clearTimeout(timer);
  const number = ++asked, m = model();
  let found;
  try {
    found = await api.understand(m.name, m.text, page.choice);
  } catch (error) {
    if (number === asked) complain(error);
    return;
  }
  if (number !== asked || m !== model()) return;  // typed on meanwhile
  $("model-error").textContent = found.error ? `${found.error.line ? `Line ${found.error.line}: ` : ""}${found.error.message}` : found.data_error ?? "";
  $("model-notes").replaceChildren(...found.notes.map((text) => element("li", "", text)));
  $("fit").disabled = Boolean(found.error || found.data_error || !dataName || found.candidates > 1);
  $("fit").title = found.candidates > 1 ? "The optional terms make several models: press Compare all" : "";
  editor.mark(found.error, found.states);
  drawColumns();
  if (found.module) {
    u = found;
    for (const e of u.experiments) e.shown = u.columns.length;
    if (!experiments().includes(page.experiment)) page.experiment = "";
    const unknown = fill();
    worker.postMessage({ load: { url: u.module, courses: u.experiments, given: u.given.map((s) => u.states.indexOf(s)) } });
    const guessed = found.error || found.data_error ? null : guess();
    // New sliders wait a moment for what the data say of them, so that they do not jump.
    if (unknown && guessed) await Promise.race([guessed, new Promise((done) => setTimeout(done, 500))]);
    if (number !== asked || m !== model()) return;
  }
  drawColumns();
  drawExperiments();
  drawSliders();
  drawResults();
  follow();
  keep();
}

/** Values for what has none yet, and for all as long as no slider was moved; whether there were new ones. */
function fill() {
  const m = model(), { values } = m;
  let unknown = false;
  for (const row of rowsOf(u)) {
    const every = experiments();
    keysOf(row, every).forEach((key, i) => {
      unknown ||= typeof values[key] !== "number";
      const before = typeof values[key] === "number" ? values[key] : null;
      const given = row.fixed ?? (m.moved ? before : null) ?? row.start;
      values[key] = given ?? m.guess?.values[key] ?? row.seen(every[i]) ?? said("values", key) ?? before ?? row.otherwise;
    });
  }
  return unknown;
}

// --- what the data say of the sliders

/** Of "values" or "sizes", what was said of one slider, or of it in another experiment. */
const said = (what, key) => model().guess?.[what]?.[key] ?? model().guess?.[what]?.[key.replace(/\[.*\]$/s, "")];

let guessing = null, guessAgain = false;

/** Ask for a guess, if text and data are new since the last. */
function guess() {
  const m = model(), key = JSON.stringify([m.text, page.choice, dataName]);
  if (!dataName || m.guess?.key === key) return null;
  if (guessing) { guessAgain = true; return guessing; }
  guessing = (async () => {
    const found = await api.guess(m.name, m.text, page.choice).catch(() => ({}));
    guessing = null;
    const latest = m === model() && !guessAgain;
    guessAgain = false;
    if (!latest) return guess();
    m.guess = { key, values: found.values ?? {}, sizes: found.sizes ?? {} };
    if (u) {
      sliders.ranges = m.moved ? sliders.ranges : {};
      fill();
      drawSliders();
      follow();
    }
    keep();
  })();
  return guessing;
}

// --- following the sliders

const worker = new Worker("/static/simulate.js", { type: "module" });
let busy = false, again = false, sequence = 0;

worker.onmessage = ({ data }) => {
  if (data.loaded || data.error) return follow();
  busy = false;
  if (data.seq === sequence || data.curves.length) {
    curves = data.curves;
    const ended = curves.find((c) => c.ended !== null);
    $("sim-note").textContent = ended ? `The curve of these sliders ends at ${shown(ended.ended)}.` : "";
    drawCharts();
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
  }
  if (again) follow();
};

function follow() {
  if (!u || !u.experiments.length) { curves = []; return drawCharts(); }
  if (busy) { again = true; return; }
  again = false;
  busy = true;
  const { values } = model(), every = experiments(), several = every.length > 1;
  const own = (row, name, e) => values[row && several ? `${name}[${e}]` : name];
  const wanted = u.experiments.map((e, course) => ({ e, course })).filter(({ e }) => !page.experiment || e.name === page.experiment);
  const asked = wanted.map(({ e, course }) => ({
    course,
    p: u.parameters.map((p) => (p.fixed !== null ? p.fixed : own(p.local, p.name, e.name))),
    free: u.states.map((s) => (u.free.includes(s) ? own(true, `${s}(0)`, e.name) : 0)),
  }));
  worker.postMessage({ seq: ++sequence, url: u.module, values: asked });
}

// --- charts

let charts = new Map(), signature = "";

/** What is drawn: columns with their observations by experiment. */
function drawn() {
  if (u && u.experiments.length && (u.observed.length || !dataName)) {
    return {
      names: u.columns.slice(0, 24), hidden: (name) => dataName && !u.observed.includes(name),
      experiments: u.experiments.map((e) => ({ name: e.name, columns: e.observed })),
    };
  }
  const found = table?.experiments ?? [];
  return { names: Object.keys(found[0]?.columns ?? {}).slice(0, 24), hidden: () => false, experiments: found };
}

function shownFits() {
  if (page.showing === "compare") {
    const answer = jobs.get(page.compared)?.answer;
    return answer ? Object.entries(answer.fits).map(([name, fit], i) => ({ name, fit, colour: i })) : [];
  }
  const answer = jobs.get(model()?.job)?.answer;
  return answer ? [{ name: "", fit: answer, colour: null }] : [];
}

function drawCharts() {
  const { names, hidden, experiments: every } = drawn();
  const key = JSON.stringify([names, names.map(hidden)]);
  if (key !== signature) {
    for (const chart of charts.values()) chart.remove();
    const height = names.length > 4 ? 190 : 240;
    charts = new Map(names.map((name) => [name, new Chart($("charts"), { title: name, note: hidden(name) ? "hidden" : "", height })]));
    signature = key;
  }
  const fits = shownFits(), several = every.length > 1, comparing = page.showing === "compare";
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  $("slider-key").hidden = comparing;
  const chosen = every.map((e, i) => ({ ...e, i })).filter((e) => !page.experiment || e.name === page.experiment);
  const times = range(chosen.flatMap((e) => Object.values(e.columns).map((d) => d.t)), 0);
  const measured = chosen.some((e) => Object.values(e.columns).some((d) => d.t.length)) ? times : null;
  names.forEach((name, c) => {
    const tint = (i) => colour(several ? i : c);
    const points = [], lines = [], bands = [];
    for (const e of chosen) {
      const d = e.columns[name];
      if (d) points.push({ ...d, colour: comparing && !several ? ink : tint(e.i) });
      for (const { fit, colour: own } of fits) {
        const found = fit.experiments[e.name], curve = found?.columns[name];
        if (!curve) continue;
        const paint = own === null ? tint(e.i) : colour(own);
        if (fits.length * chosen.length <= 4) bands.push({ t: found.t, low: curve.low, high: curve.high, colour: paint, alpha: fits.length > 1 ? 0.1 : 0.18 });
        lines.push({ t: found.t, y: curve.y, colour: paint, width: chosen.length > 4 ? 1.4 : 2.2 });
      }
    }
    const solid = range([...points.map((p) => p.y), ...bands.flatMap((b) => [b.low, b.high]), ...lines.map((l) => l.y)], 0.08);
    const followed = [];
    for (const curve of comparing ? [] : curves) {
      const e = u?.experiments[curve.course], m = u?.columns.indexOf(name) ?? -1;
      if (!e || m < 0 || !curve.y[m] || !chosen.some((own) => own.name === e.name)) continue;
      const own = chosen.length > 1 ? tint(curve.course) : ink;
      followed.push({ t: curve.t, y: curve.y[m], colour: own, dash: [6, 4], width: chosen.length > 4 ? 1.1 : 1.8 });
    }
    // Curves of sliders may go far, and those that settle begin long before: they widen the picture, but do not flatten the data.
    const empty = !points.length && !lines.length;
    const wide = range(followed.map((l) => l.y), 0.08);
    const y = empty ? wide : followed.length ? widened(solid, wide, 0.5) : solid;
    const all = range([...points, ...lines, ...followed].map((l) => l.t), 0);
    const x = range([measured ? widened(measured, all, 1) : all], 0.025);
    const chart = charts.get(name);
    chart.read = (time) => [
      `t ${shown(time, 3)}`,
      ...fits.slice(0, 4).map(({ fit, name: own }, i) => {
        const e = fit.experiments[chosen[0]?.name], value = e?.columns[name] ? at(e.t, e.columns[name].y, time) : null;
        return value === null ? "" : `${own ? LETTERS[i] : "fit"} ${shown(value, 3)}`;
      }),
      followed[0] ? `sliders ${shown(at(followed[0].t, followed[0].y, time), 3)}` : "",
    ].filter(Boolean).join(" · ");
    const count = points.reduce((sum, p) => sum + p.y.length, 0);
    chart.describe(`${name}: ${count} observations${fits.length ? ", with the fit" : ""}${followed.length ? ", with the curve of the sliders" : ""}`);
    chart.set({ points, bands, lines: [...lines, ...followed] }, x, y);
  });
  const keys = fits.map(({ name, colour: own }, i) => {
    const box = element("span"), mark = box.appendChild(element("i", own === null ? "key band" : "key"));
    if (own !== null) mark.style.borderTopColor = colour(own);
    box.append(own === null ? "fit with 95 % band" : `${LETTERS[i]} ${name}`);
    return box;
  });
  $("fit-keys").replaceChildren(...keys);
}

// --- controls

function drawTabs() {
  $("model-tabs").replaceChildren(...page.models.map((m, i) => {
    const tab = element("button", "", page.models.length > 1 ? LETTERS[i] : "Model");
    Object.assign(tab, { type: "button", title: m.name });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(i === page.current));
    tab.addEventListener("click", () => { page.current = i; page.showing = "fit"; show(); keep(); });
    return tab;
  }));
  $("remove").hidden = page.models.length < 2;
}

function unique(name) {
  const taken = new Set(page.models.map((m) => m.name));
  let found = name;
  for (let i = 2; taken.has(found); i++) found = `${name.replace(/ \d+$/, "")} ${i}`;
  return found;
}

function drawExperiments() {
  const every = experiments().length ? experiments() : (table?.experiments ?? []).map((e) => e.name);
  $("experiment-label").hidden = every.length < 2;
  $("experiment").replaceChildren(new Option("all", ""), ...every.map((name) => new Option(name, name)));
  $("experiment").value = page.experiment;
  $("compare").hidden = page.models.length < 2 && (u?.candidates ?? 1) < 2;
}

function drawSliders() {
  $("no-parameters").hidden = Boolean(u);
  $("guess").hidden = !u || !dataName || !model().moved;
  if (!u) return $("sliders").replaceChildren();
  const every = experiments();
  const rows = rowsOf(u).map((row) => {
    const keys = keysOf(row, every);
    return { ...row, keys: keys.length > 1 && page.experiment ? [keys[every.indexOf(page.experiment)]] : keys };
  });
  sliders.draw(rows, model().values, estimates());
}

/** Estimates with intervals by the keys of sliders. */
function estimates() {
  const answer = jobs.get(model().job)?.answer;
  if (!answer) return {};
  const found = {}, intervals = bestIntervals(answer), several = Object.keys(answer.experiments).length > 1;
  for (const [name, value] of Object.entries(answer.theta)) {
    if (!answer.fixed.includes(name)) found[name] = { value, low: intervals[name]?.[0] ?? null, high: intervals[name]?.[1] ?? null };
  }
  for (const [name, e] of Object.entries(answer.experiments)) {
    for (const [state, value] of Object.entries(e.initial)) {
      const key = several ? `${state}(0)[${name}]` : `${state}(0)`, c = e.columns[state];
      found[key] ??= { value, low: c?.low[0] ?? null, high: c?.high[0] ?? null };
    }
  }
  const to = answer.parameters.header.indexOf("to");  // the table has digits that fit the interval
  for (const row of answer.parameters.rows) if (to > 0 && found[row[0]]) found[row[0]].words = `${row[1]}, 95 %: ${row[to - 1]} to ${row[to]}`;
  return found;
}

const columnsAnew = patient($("columns"));
function drawColumns() {
  $("table-error").textContent = table?.error ?? "";
  $("table-notes").replaceChildren(...(table?.notes ?? []).map((text) => element("li", "", text)));
  const columns = table?.columns ?? [];
  const now = { choice: page.choice, u, text: () => model()?.text ?? "", time: page.choice.time ?? columns.find((c) => c.role === "time")?.name };
  const on = { assigned: assign, scatters: (name, words) => rewrite(withDistribution(model().text, name, words)) };
  const none = element("p", "muted", "Drop a CSV or Excel file anywhere on this page.");
  columnsAnew(() => (columns.length ? columns.map((c) => columnBox(c, now, on)) : [none]));
}

/** A column is something else from now on. */
async function assign(column, role) {
  if (role === MEASURES) {
    const name = asName(column);
    page.choice = reassigned(page.choice, table, u, column, name);
    model().text = editor.text = withDistribution(model().text, name, `normal(${u.states[0]})`);
  } else page.choice = reassigned(page.choice, table, u, column, role);
  await readTable();
  await understand();
}

// --- jobs

function adopt(job) {
  const before = jobs.get(job.id) ?? {};
  jobs.set(job.id, { ...before, ...job });
  return jobs.get(job.id);
}

const ask = guarded(async (kind) => {
  const own = model();
  const chosen = kind === "compare" ? page.models : [own];
  const job = adopt(await api.order(kind, chosen.map(({ name, text }) => ({ name, text })), page.choice));
  const made = { text: chosen.map((m) => m.text).join("\n"), choice: JSON.stringify(page.choice), data: dataName };
  await watch({ ...job, for: kind === "compare" ? null : own, made });
});

let watched = null;

async function watch(job) {
  watched = job.id;
  const target = job.for ?? page.models.find((m) => m.name === job.models[0]);
  let answered = false;
  const begun = performance.now();
  try {
    for await (const message of api.follow(job.id)) {
      const now = adopt(message);
      const seconds = (performance.now() - begun) / 1000;
      $("job").hidden = Boolean(now.answer) || !WORKING.includes(now.state);
      $("job-bar").value = now.share ?? 0;
      $("job-words").textContent = `${now.progress ?? "starting"}${seconds > 2 ? ` · ${seconds.toFixed(0)} s` : ""}`;
      if (now.answer && !answered) {
        answered = true;
        if (now.kind === "compare") Object.assign(page, { compared: job.id, showing: "compare", comparedOf: job.made ?? page.comparedOf });
        else if (target) Object.assign(target, { job: job.id, made: job.made ?? target.made }), page.showing = "fit";
        drawSliders();
        drawResults();
        drawCharts();
        keep();
      } else if (now.answer) drawFiles();
      if (now.state === "failed") complain(now.error);
    }
  } catch (error) {
    complain(error);
  }
  $("job").hidden = true;
  watched = null;
  keep();
}

function drawResults() {
  const comparing = page.showing === "compare";
  const job = jobs.get(comparing ? page.compared : model()?.job), answer = job?.answer;
  $("verdict").hidden = !answer;
  if (!answer) return clear($("results"));
  $("headline").textContent = answer.headline;
  $("verdict").className = `verdict ${answer.tone}`;
  $("take").hidden = $("uncertainty").hidden = comparing;
  for (const button of $("uncertainty").children) button.classList.toggle("done", Boolean(answer.intervals?.[button.dataset.kind]));
  const made = comparing ? page.comparedOf : model().made;
  const text = comparing ? page.models.map((m) => m.text).join("\n") : model().text;
  $("stale").hidden = !made || (made.text === text && made.choice === JSON.stringify(page.choice) && made.data === dataName);
  if (comparing) showComparison($("results"), answer); else showFit($("results"), answer);
  drawFiles();
}

function drawFiles() {
  const job = jobs.get(page.showing === "compare" ? page.compared : model()?.job);
  if (job) files($("files"), job, guarded((name) => api.download(job.id, name)));
}

// --- what is clicked, dropped and typed

$("fit").addEventListener("click", () => ask("fit"));
$("compare").addEventListener("click", () => ask("compare"));
$("cancel").addEventListener("click", guarded(async () => { if (watched) await api.cancel(watched); }));
for (const button of $("uncertainty").children) button.addEventListener("click", () => ask(button.dataset.kind));
$("take").addEventListener("click", () => {
  for (const [key, { value }] of Object.entries(estimates())) if (typeof value === "number") model().values[key] = value;
  model().moved = true;
  drawSliders();
  follow();
  keep();
});
$("guess").addEventListener("click", () => {
  Object.assign(model(), { moved: false, guess: null });
  sliders.ranges = {};
  understand();
});
$("duplicate").addEventListener("click", () => {
  const m = model();
  page.models.splice(page.current + 1, 0, { name: unique(m.name), text: m.text, values: { ...m.values }, moved: m.moved, guess: m.guess });
  page.current += 1;
  page.showing = "fit";
  show();
  keep();
});
$("remove").addEventListener("click", () => {
  page.models.splice(page.current, 1);
  page.current = Math.max(0, page.current - 1);
  show();
  keep();
});
$("model-name").addEventListener("change", () => {
  const name = $("model-name").value.trim() || "model";
  model().name = "";
  model().name = $("model-name").value = unique(name);
  drawTabs();
  soon();
});
$("experiment").addEventListener("change", () => {
  page.experiment = $("experiment").value;
  drawSliders();
  follow();
  drawCharts();
  keep();
});
$("model-error").addEventListener("click", () => editor.select());
$("message").querySelector("button").addEventListener("click", () => complain(null));
$("file").addEventListener("change", () => { if ($("file").files[0]) take($("file").files[0]); $("file").value = ""; });
$("other-data").addEventListener("click", () => $("file").click());
$("home").addEventListener("click", guarded(async (event) => {
  event.preventDefault();
  document.body.dataset.view = "welcome";
  $("back").hidden = !page.models.length;
}));
$("back").addEventListener("click", () => { document.body.dataset.view = "workspace"; drawCharts(); });

let inside = 0;
addEventListener("dragenter", (event) => { event.preventDefault(); if (++inside) $("dropping").hidden = false; });
addEventListener("dragleave", () => { if (--inside <= 0) { inside = 0; $("dropping").hidden = true; } });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  $("dropping").hidden = true;
  const file = event.dataTransfer?.files[0];
  if (file) take(file);
});
addEventListener("pagehide", () => { if (page.models.length) keep(true); });
document.addEventListener("click", (event) => { if (!$("downloads").contains(event.target)) $("downloads").open = false; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawCharts(); drawResults(); });

start().catch(complain);
