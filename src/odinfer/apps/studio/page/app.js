// The page as a whole: what there is (`page`, which survives a reload), and what happens when something changes.
import * as api from "./api.js";
import { colour, shown } from "./charts.js";
import { MEASURES, columnBox, preview, reassigned, roleOf } from "./columns.js";
import { Editor, element, formula, patient } from "./editor.js";
import { History } from "./history.js";
import { Jobs } from "./jobs.js";
import { LETTERS, bestIntervals, clear, files, showComparison, showFit, showPopulation, showStudy } from "./results.js";
import { thumbnail } from "./picture.js";
import { Pictures } from "./pictures.js";
import { keysOf, rowsOf } from "./rows.js";
import { Sliders } from "./sliders.js";
import { asName, firstModel, withBounds, withDistribution, withFixed, withLocal, withScale, withStart } from "./statements.js";

const $ = (id) => document.getElementById(id);

/** What is remembered: models with their texts, values of sliders and jobs; what was chosen about columns; for every
 * job which model it was asked for, and of what texts and data it was made. */
let page = { models: [], current: 0, choice: { time: null, names: {}, sd: {} }, experiment: "", compared: null, showing: "fit", asked: {} };
let dataName = null;  // of the file, if there is one
let revision = 0;     // of the data: every file that is brought has another
let table = null;     // its columns and everything that can be drawn of it
let u = null;         // what the server has understood of the current model
let curves = [];      // what the sliders give

const model = () => page.models[page.current];
const experiments = () => (u?.experiments ?? []).map((e) => e.name);
let leaving = false;
const keep = (now = false) => (leaving ? undefined : api.keep(page, now));

function complain(error) {
  $("message").hidden = !error;
  $("message").firstElementChild.textContent = error ? error.message ?? String(error) : "";
}

const guarded = (action) => async (...args) => {
  try { complain(null); return await action(...args); } catch (error) { complain(error); }
};

// --- beginning

const jobs = new Jobs($("job"), {
  answered,
  changed(job) {
    if (model()?.guess?.failed) model().guess = null, soon();
    if (job) drawResults();
    keep();
  },
  failed: (words, job) => { if (page.asked[job.id]?.data === revision) complain(words); },
});
const steps = new History($("undo"), $("redo"), () => show());
const editor = new Editor($("editor"), (text) => {
  steps.remember(model(), "typing");
  model().text = text;
  soon();
});
const sliders = new Sliders($("sliders"), {
  moved(keys, value, redraw = false) {
    steps.remember(model(), `moving ${keys[0]}`);
    $("guess").hidden = !dataName;
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
  scaled: (name, scale) => rewrite(withScale(model().text, name, scale)),
  spread: (name, local) => rewrite(withLocal(model().text, name, local)),
  distributed: (name, words) => rewrite(withDistribution(model().text, name, words)),
});

function rewrite(text) {
  steps.remember(model(), "a change of the text");
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
  thumbnails(found.examples).catch(console.debug);  // pictures only
  showProjects(found.projects);
  dataName = found.data;
  revision = found.revision;
  if (found.page.models || found.data) {
    page = { ...page, ...found.page };
    for (const m of page.models) Object.assign(m, { id: m.id ?? fresh(), values: m.values ?? {} });
    for (const job of found.jobs) jobs.adopt({ ...job, made: page.asked[job.id]?.made });
    await open(false);
    for (const job of found.jobs) if (["waiting", "running", "writing"].includes(job.state)) jobs.watch(job);
  } else view("welcome", false);
}

const fresh = () => crypto.getRandomValues(new Uint32Array(2)).join("");
const newModel = (name, text, more = {}) => ({ id: fresh(), name, text, values: {}, ...more });

/** Show the start page or the workspace; Back returns to the other. */
function view(name, push = true) {
  if (document.body.dataset.view === name) return;
  document.body.dataset.view = name;
  if (push) history.pushState({ view: name }, ""); else history.replaceState({ view: name }, "");
  $("back").hidden = !page.models.length;
  scrollTo(0, 0);
}

addEventListener("popstate", ({ state }) => {
  document.body.dataset.view = state?.view === "workspace" && page.models.length ? "workspace" : "welcome";
  $("back").hidden = !page.models.length;
  drawCharts();
});

const openProject = guarded(async (file, key) => {
  await api.openProject(file, key);
  leaving = true;  // what is on the page now is not this project's
  location.reload();
});

function showProjects(projects) {
  $("projects").replaceChildren(...projects.map(projectButton));
  $("continue").hidden = !projects.length;
}

function projectButton({ id, data, models, when }) {
  const item = element("li"), button = item.appendChild(element("button"));
  button.type = "button";
  const day = new Date(when * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  button.append(element("b", "", data || models[0] || "project"), element("span", "", `${models.join(", ")} · ${day}`));
  button.addEventListener("click", () => openProject(null, id));
  return item;
}

/** Pictures of the examples, one after the other, so that nobody waits for them. */
async function thumbnails(examples) {
  for (const [i, { name }] of examples.entries()) {
    const { experiments } = await api.thumbnail(name);
    $("examples").children[i]?.querySelector(".thumbnail").append(thumbnail(experiments, colour));
  }
}

function exampleButton({ name, title }) {
  const item = element("li"), button = item.appendChild(element("button"));
  button.type = "button";
  const [what, more] = title.split(/[:,;]\s(.*)/s);
  const image = button.appendChild(element("i", "thumbnail"));  // drawn as soon as its data are there
  image.setAttribute("aria-hidden", "true");
  button.append(element("b", "", what), element("span", "", more ?? ""));
  button.addEventListener("click", guarded(async () => {
    const found = await api.example(name, await left());
    begun(found, [newModel(found.model, found.text, { example: found.text })]);
    await open();
  }));
  return item;
}

/** Other data have come: models stay if they are given, results do not. */
function begun(found, models) {
  dataName = found.name;
  revision = found.revision;
  table = found;
  Object.assign(page, { models, current: 0, choice: { time: null, names: {}, sd: {} }, experiment: "", compared: null, showing: "fit" });
  sliders.ranges = {};
  clearModel();
  drawCharts();  // the data at once, and nothing of those before
}

let reading = 0;  // files that have not arrived

/** Files that were dropped or chosen: what is read shows in the bar until it is there. */
async function take(files) {
  if (!files.length) return;
  document.body.setAttribute("aria-busy", String(Boolean(++reading)));
  $("file-name").textContent = `reading ${files.length > 1 ? `${files.length} files` : files[0].name} …`;
  await taken(files);
  document.body.setAttribute("aria-busy", String(Boolean(--reading)));
  $("file-name").textContent = dataName ?? "no data yet";
}

const ends = (file, ...endings) => endings.some((ending) => file.name.toLowerCase().endsWith(ending));

/** A problem in PEtab needs all of its files; of others there are data and then models. */
const taken = guarded(async (files) => {
  const project = files.find((file) => ends(file, ".odinfer"));
  if (project) return openProject(project);
  if (files.some((file) => ends(file, ".yaml", ".yml", ".zip"))) return convert(files);
  const [models, data] = [[], []];
  for (const file of files) (ends(file, ".ode", ".xml", ".sbml") ? models : data).push(file);
  if (data.length > 1) throw new Error(`These are ${data.length} data files; bring one. A PEtab problem needs its .yaml beside its tables.`);
  if (data.length) await takeData(data[0]);
  for (const file of models) {
    if (ends(file, ".ode")) await takeModel(file.name.replace(/\.ode$/i, ""), await file.text());
    else await convert([file]);
  }
});

/** SBML and PEtab, which become text, and data if there are any. */
async function convert(files) {
  const found = await api.convert(files, await left());
  if (!found.columns) return takeModel(found.model, found.text);
  begun(found, [newModel(found.model, found.text, { values: found.values, moved: Object.keys(found.values).length > 0 })]);
  await open();
}

/** Whether somebody has worked on what is here, before other models and data take its place: it is saved then. */
async function left() {
  const worked = page.models.some((m) => (m.text !== m.example && m.text !== m.generated) || m.job);
  if (worked) await keep(true);
  return worked;
}

/** A model beside those that are here, but for one that nobody has written. */
async function takeModel(name, text) {
  if (page.models.length === 1 && page.models[0].generated === page.models[0].text) page.models = [];
  page.models.push(newModel(unique(name), text));
  page.current = page.models.length - 1;
  page.showing = "fit";
  await open();
}

async function takeData(file) {
  const found = await api.upload(file);
  const had = page.models.filter((m) => m.generated !== m.text), current = Math.min(page.current, had.length - 1);
  begun(found, []);
  const columns = freeColumns();
  const written = new Set(had.flatMap((m) => m.text.match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? []));
  const kept = had.map((m) => ({ ...m, job: null, studies: {}, guess: null, moved: false }));
  if (columns.some((c) => written.has(asName(c.name)))) {
    for (const { name } of columns) if (asName(name) !== name && written.has(asName(name))) page.choice.names[name] = asName(name);
    page.models = kept;
    page.current = Math.max(0, current);
  } else {
    page.models = kept.filter((m) => m.text !== m.example);  // what somebody wrote is never lost
    page.models.unshift(firstGuess(columns));
  }
  await open();
}

const freeColumns = () => table.columns.filter((c) => !c.role && c.cells.some((cell) => /\d/.test(cell)));

function firstGuess(columns) {
  for (const { name } of columns) if (asName(name) !== name) page.choice.names[name] = asName(name);
  const text = firstModel(columns.map((c) => c.name));
  return newModel(unique("model"), text, { generated: text });
}

async function open(push = true) {
  clearModel();
  view("workspace", push);
  $("file-name").textContent = dataName ?? "no data yet";
  for (const id of ["log", "phase"]) $(id).checked = Boolean(page[id]);
  page.current = Math.max(0, Math.min(page.current, page.models.length - 1));
  drawTabs();
  if (dataName && (!table || page.choice.time || Object.keys(page.choice.names).length)) await readTable();
  if (!page.models.length) page.models = [table ? firstGuess(freeColumns()) : newModel("model", "x' = -k*x\n")];
  await show();
}

async function readTable() {
  try { table = await api.table({ ...page.choice, names: {} }); } catch (error) { complain(error); }
}

/** Take away what was understood of another model, and its sliders: they would change the current one. */
function clearModel() {
  u = null;
  curves = [];
  $("fit").disabled = $("typeset").hidden = true;
  $("sliders").style.minHeight = `${$("sliders").offsetHeight}px`;  // nothing below jumps
  sliders.clear();
}

/** Everything about the current model. */
async function show() {
  clearModel();
  drawTabs();
  editor.mark(null, []);
  editor.text = model().text;
  $("model-name").value = model().name;
  steps.show(model());
  drawColumns();
  drawResults();
  await understand();
}

// --- understanding

let asked = 0, understood = 0;  // of the questions about the text: the latest, and that whose answer is on the page
async function understand() {
  clearTimeout(timer);
  timer = null;
  const number = ++asked, m = model();
  let found;
  try {
    found = await api.understand(m.name, m.text, page.choice);
  } catch (error) {
    if (number === asked) { understood = number; complain(error); }
    return;
  }
  if (number !== asked || m !== model()) return;  // typed on meanwhile
  understood = number;
  $("model-error").textContent = found.error ? `${found.error.line ? `Line ${found.error.line}: ` : ""}${found.error.message}` : found.data_error ?? "";
  $("model-notes").replaceChildren(...found.notes.map((text) => element("li", "", text)));
  $("fit").disabled = Boolean(found.error || found.data_error || !dataName || found.candidates > 1);
  $("fit").title = found.candidates > 1 ? "The optional terms make several models: press Compare all" : "";
  editor.mark(found.error, found.states);
  drawColumns();
  if (found.module) {
    u = { ...found, key: number };
    $("typeset").hidden = !found.typeset.length;
    $("typeset").replaceChildren(...found.typeset.map((tree) => formula(["math", ["mstyle", tree]])));
    for (const e of u.experiments) e.shown = u.columns.length;
    if (!experiments().includes(page.experiment)) page.experiment = "";
    const unknown = fill();
    worker.postMessage({ load: { key: number, url: u.module, courses: u.experiments, given: u.given.map((s) => u.states.indexOf(s)) } });
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
  const m = model(), key = JSON.stringify([m.text, page.choice, revision]);
  if (!dataName || m.guess?.key === key) return null;
  if (guessing) { guessAgain = true; return guessing; }
  guessing = (async () => {
    const found = await api.guess(m.name, m.text, page.choice).catch(() => ({ failed: true }));
    guessing = null;
    const latest = m === model() && !guessAgain;
    guessAgain = false;
    if (!latest) return guess();
    m.guess = { key, values: found.values ?? {}, sizes: found.sizes ?? {}, failed: Boolean(found.failed) };
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
  busy = false;
  if (data.seq === sequence || data.curves.length) {
    curves = data.curves;
    requestAnimationFrame(drawCurves);
  } else if (again) follow();
};

/** The curves that came last, once per frame. */
function drawCurves() {
  const ended = curves.find((c) => c.ended !== null);
  $("sim-note").textContent = ended ? `The curve of these sliders ends at ${shown(ended.ended)}.` : "";
  drawCharts();
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
  if (again) follow();
}

function follow() {
  if (!u || !u.experiments.length) { curves = []; return drawCharts(); }
  if (busy) { again = true; return; }
  again = false;
  busy = true;
  weigh();
  const { values } = model(), every = experiments(), several = every.length > 1;
  const own = (row, name, e) => values[row && several ? `${name}[${e}]` : name];
  const wanted = u.experiments.map((e, course) => ({ e, course })).filter(({ e }) => !page.experiment || e.name === page.experiment);
  const asked = wanted.map(({ e, course }) => ({
    course,
    p: u.parameters.map((p) => (p.fixed !== null ? p.fixed : own(p.local, p.name, e.name))),
    free: u.states.map((s) => (u.free.includes(s) ? own(true, `${s}(0)`, e.name) : 0)),
  }));
  worker.postMessage({ seq: ++sequence, key: u.key, values: asked });
}

// --- charts

/** Names of axes as the file has them, with their units. */
const timeName = () => page.choice.time ?? table?.columns.find((c) => c.role === "time")?.name ?? "time";
const columnName = (name) => Object.entries(page.choice.names).find(([, own]) => own === name)?.[0] ?? "";

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

/** What there is to show, if it was made of these data: the comparison, or the fit of the current model. */
function shownJob() {
  const id = page.showing === "compare" ? page.compared : model()?.job;
  return id && page.asked[id]?.data === revision ? jobs.get(id) : null;
}

const fitted = (m) => (m?.job && page.asked[m.job]?.data === revision ? jobs.get(m.job)?.answer : null);

function shownFits() {
  if (page.showing === "compare") {
    const answer = shownJob()?.answer;
    return answer ? Object.entries(answer.fits).map(([name, fit], i) => ({ name, fit, colour: i })) : [];
  }
  const answer = fitted(model());
  return answer ? [{ name: "", fit: answer, colour: null }] : [];
}

const pictures = new Pictures($);
function drawCharts() {
  pictures.draw({ ...drawn(), u, curves, fits: shownFits(), comparing: page.showing === "compare", page, revision, table, timeName: timeName(), columnName });
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
  if (!u) return sliders.clear();
  if (understood !== asked) return;  // the text says something else by now, and sliders of that are on their way
  const every = experiments();
  const rows = rowsOf(u).filter((row) => !row.hidden).map((row) => {
    const keys = keysOf(row, every), chosen = every.indexOf(page.experiment);
    return { ...row, keys: keys.length > 1 && chosen >= 0 ? [keys[chosen]] : keys };
  });
  sliders.draw(rows, model().values, estimates());
  $("sliders").style.minHeight = "";
}

/** Estimates with intervals by the keys of sliders. */
function estimates() {
  const answer = fitted(model());
  if (!answer) return {};
  const found = {}, intervals = bestIntervals(answer), several = Object.keys(answer.experiments).length > 1;
  for (const [name, value] of Object.entries(answer.theta)) {
    if (!answer.fixed.includes(name)) found[name] = { value, low: intervals[name]?.[0] ?? null, high: intervals[name]?.[1] ?? null };
  }
  for (const [subject, own] of Object.entries(answer.individual ?? {})) {
    for (const [name, [value, low, high]] of Object.entries(own)) found[`${name}[${subject}]`] = { value, low, high };
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
  $("preview").hidden = !table?.preview?.rows.length;
  if (table?.preview) preview($("preview"), table, (c) => roleOf(c, page.choice, u));
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

// --- jobs and what they find

/** What a job is made of; a result is stale if this is not what there is now. */
const ingredients = (models) => JSON.stringify([models.map((m) => m.text), page.choice, revision]);

const STUDIES = ["discover", "design"];

const ask = guarded(async (kind, options = {}) => {
  if (timer) await understand();  // what was typed just now
  if (kind !== "compare" && $("fit").disabled) return;
  const chosen = kind === "compare" ? page.models : [model()], made = ingredients(chosen);
  if (!STUDIES.includes(kind) && jobs.asked(kind, made)) return;
  const job = await api.order(kind, chosen.map(({ name, text }) => ({ name, text })), page.choice, options);
  page.asked = Object.fromEntries(Object.entries(page.asked).slice(-40));
  page.asked[job.id] = { model: kind === "compare" ? null : chosen[0].id, made, data: revision };
  keep(true);
  jobs.watch(jobs.adopt({ ...job, made }));
});

function answered(job) {
  const { model: id, data } = page.asked[job.id] ?? {}, target = page.models.find((m) => m.id === id);
  if (data !== revision) return;  // of data that are there no longer
  if (job.kind === "compare") Object.assign(page, { compared: job.id, showing: "compare" });
  else if (target && STUDIES.includes(job.kind)) {
    target.studies = { ...target.studies, [job.kind]: job.id };
    if (target === model()) page.showing = "fit";
  } else if (target) {
    target.job = job.id;
    if (target === model()) page.showing = "fit";
    if (job.kind === "fit" && page.asked[job.id].made === ingredients([target])) moveToFit(target);
  }
  drawSliders();
  drawResults();
  drawCharts();
  keep();
  if (target && target !== model()) return;
  const study = STUDIES.includes(job.kind) && $("results").querySelector(`[data-study=${job.kind}]`);
  if (study) study.scrollIntoView({ block: "start" }); else $("verdict").scrollIntoView({ block: "nearest" });
}

/** The sliders to the estimates. */
function moveToFit(m) {
  if (m !== model()) return;
  steps.remember(m, "moving the sliders to the fit");
  for (const [key, { value }] of Object.entries(estimates())) if (typeof value === "number") m.values[key] = value;
  m.moved = true;
  drawSliders();
  follow();
}

function drawResults() {
  const comparing = page.showing === "compare", job = shownJob(), answer = job?.answer;
  $("verdict").hidden = !answer;
  if (!answer) { resultsAre = []; return clear($("results")); }
  const stale = page.asked[job.id].made !== ingredients(comparing ? page.models : [model()]);
  $("headline").textContent = answer.headline;
  $("verdict").className = `verdict ${stale ? "stale-card" : answer.tone}`;
  $("take").hidden = comparing;
  $("uncertainty").hidden = comparing || answer.kind === "population";
  $("studies").hidden = comparing || answer.kind === "population";
  for (const button of $("uncertainty").children) button.classList.toggle("done", Boolean(answer.intervals?.[button.dataset.kind]));
  $("stale").hidden = !stale;
  $("caveats").replaceChildren(...(stale ? [] : answer.caveats ?? []).map((text) => element("li", "", text)));
  const offers = stale ? [] : answer.next ?? [];
  $("next").hidden = !offers.length;
  $("next").replaceChildren(element("span", "muted", "What next?"), ...offers.map(nextButton));
  drawTables(answer, job, comparing ? [] : studiesOf(model()));
  files($("files"), job, guarded((name) => api.download(job.id, name)));
}

/** What was found beside the fit of a model on these data: its job, and whether its text has changed since. */
const studiesOf = (m) => Object.values(m.studies ?? {}).filter((id) => page.asked[id]?.data === revision && jobs.get(id)?.answer)
  .map((id) => ({ job: jobs.get(id), stale: page.asked[id].made !== ingredients([m]) }));

let resultsAre = [];  // what the tables below the charts were made of

/** Draw tables and pictures, if they are not there already. */
function drawTables(answer, job, studies) {
  const made = [answer, answer.pictures && job.files, ...studies.flatMap((s) => [s.job.answer, s.job.files, s.stale])];
  if (made.length === resultsAre.length && made.every((part, i) => part === resultsAre[i])) return;
  resultsAre = made;
  const show = { compare: showComparison, population: showPopulation }[answer.kind] ?? showFit;
  show($("results"), answer, job);
  const on = { button: nextButton, planned: (add, last) => ask("design", { add, last }) };
  for (const s of studies) showStudy($("results"), s.job.answer, s.job, s.stale, on);
}

/** A step that the verdict suggests: another model beside this one, or more about its uncertainty. */
function nextButton({ label, why, text, job }) {
  const button = element("button", "", label);
  Object.assign(button, { type: "button", title: why });
  button.addEventListener("click", () => (job ? ask(job) : addModel(text)));
  return button;
}

/** A model beside the current one, with its values where it has the same parameters. */
function addModel(text) {
  const m = model();
  page.models.splice(page.current + 1, 0, newModel(unique(m.name), text, { values: { ...m.values }, moved: m.moved, guess: m.guess }));
  page.current += 1;
  page.showing = "fit";
  show();
  keep();
}

// --- the likelihood of the sliders

let weighing = false, weighAgain = false;

/** Show the log-likelihood where the sliders stand, beside that of the fit; the last position counts. */
async function weigh() {
  if (weighing) { weighAgain = true; return; }
  const m = model();
  if (!u || !dataName || !u.observed.length || $("fit").disabled) { $("loglik").textContent = ""; return; }
  [weighing, weighAgain] = [true, false];
  const { loglik } = await api.loglik(m.name, m.text, page.choice, m.values).catch(() => ({ loglik: null }));
  weighing = false;
  if (weighAgain || m !== model()) return weigh();
  $("loglik").textContent = loglik === null ? "" : `log-likelihood ${loglik.toFixed(2)}`;
}

// --- what is clicked, dropped and typed

$("fit").addEventListener("click", () => ask("fit"));
$("compare").addEventListener("click", () => ask("compare"));
$("cancel").addEventListener("click", guarded(() => jobs.cancel()));
for (const button of document.querySelectorAll("#uncertainty button, #studies button")) button.addEventListener("click", () => ask(button.dataset.kind));
$("take").addEventListener("click", () => { moveToFit(model()); keep(); });
$("guess").addEventListener("click", () => {
  steps.remember(model(), "moving the sliders to the guess");
  Object.assign(model(), { moved: false, guess: null });
  sliders.ranges = {};
  understand();
});
$("duplicate").addEventListener("click", () => addModel(model().text));
$("remove").addEventListener("click", () => {
  page.models.splice(page.current, 1);
  page.current = Math.max(0, page.current - 1);
  page.showing = "fit";
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
for (const id of ["log", "phase"]) {
  $(id).addEventListener("change", () => { page[id] = $(id).checked; drawCharts(); keep(); });
}
$("model-error").addEventListener("click", () => editor.select());
$("message").querySelector("button").addEventListener("click", () => complain(null));
$("file").addEventListener("change", () => { take([...$("file").files]); $("file").value = ""; });
$("other-data").addEventListener("click", () => $("file").click());
$("home").addEventListener("click", guarded(async (event) => {
  event.preventDefault();
  view("welcome");
  showProjects((await api.begin()).projects);
}));
$("back").addEventListener("click", () => { view("workspace"); drawCharts(); });

let inside = 0;
addEventListener("dragenter", (event) => { event.preventDefault(); if (++inside) $("dropping").hidden = false; });
addEventListener("dragleave", () => { if (--inside <= 0) { inside = 0; $("dropping").hidden = true; } });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  $("dropping").hidden = true;
  dropped(event.dataTransfer).then(take, complain);
});

/** All files of a drop, also those in folders, which have a path then; not what systems hide there. */
async function dropped(transfer) {
  const found = [];
  async function add(entry, path) {
    if (entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push(Object.assign(file, { path: path + file.name }));
    } else {
      const reader = entry.createReader();
      for (;;) {
        const some = await new Promise((done, failed) => reader.readEntries(done, failed));
        if (!some.length) return;
        for (const own of some) await add(own, `${path}${entry.name}/`);
      }
    }
  }
  const entries = [...transfer?.items ?? []].map((item) => item.webkitGetAsEntry?.());
  if (!entries.some((entry) => entry?.isDirectory)) return [...transfer?.files ?? []];
  for (const entry of entries) if (entry) await add(entry, "");
  return found;
}
addEventListener("pagehide", () => { if (page.models.length) keep(true); });
document.addEventListener("click", (event) => { if (!$("downloads").contains(event.target)) $("downloads").open = false; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { resultsAre = []; drawCharts(); drawResults(); });

$("save").addEventListener("click", guarded(async () => {
  keep(true);
  await api.saveProject(`${(dataName ?? model().name).replace(/\.\w+$/, "").replace(/[^\p{L}\p{N} ._-]+/gu, "_")}.odinfer`);
}));
api.heartbeat((alive) => { $("stopped").hidden = alive; if (alive) api.again(page); });
start().catch(complain);
