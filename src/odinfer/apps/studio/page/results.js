// What a fit or a comparison has found, in tables and small charts.
import { pictureAddress } from "./api.js";
import { Chart, colour, range, shown } from "./charts.js";
import { element } from "./editor.js";

const KINDS = { likelihood: "likelihood", profile: "profile", bootstrap: "bootstrap", sample: "posterior" };
export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const FILES = {
  "report.html": "Report", "comparison.html": "Report", "fit.json": "Everything as numbers", "comparison.json": "Everything as numbers",
  "states.csv": "States with bands", "comparison.csv": "Table of models", "gamma.csv": "Mismatch of equations", "fit.nc": "netCDF, for Python and R",
  "individual.csv": "Individual parameters", "residuals.csv": "Residuals", "samples.csv": "Samples", "ranking.csv": "Terms",
  "design.json": "Everything as numbers", "discovery.json": "Everything as numbers", "best.ode": "Model with the term",
  "plot.png": "Picture", "command.txt": "The same by command", "fit.py": "The same in Python", "compare.py": "The same in Python",
};
let charts = [];

/** A titled part; wide: over all of the width, where others may stand side by side. */
function section(parent, title, wide = false) {
  const box = parent.appendChild(element("div", wide ? "wide" : ""));
  box.append(element("h3", "", title));
  return box;
}

function folded(parent, title) {
  const box = parent.appendChild(element("details", "folded"));
  box.append(element("summary", "", title));
  return box;
}

function tableOf(parent, header, rows, tone = () => "") {
  const wrap = parent.appendChild(element("div", "table-wrap"));
  wrap.tabIndex = 0;
  wrap.setAttribute("role", "region");
  wrap.setAttribute("aria-label", "Table, can be scrolled");
  const table = wrap.appendChild(element("table", "numbers"));
  const head = table.createTHead().insertRow();
  for (const title of header) head.append(element("th", title === "equations" ? "words" : "", title));
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((cell) => {
      const td = line.insertCell();
      if (cell instanceof Node) td.append(cell); else td.textContent = cell;
      td.className = tone(cell);
    });
  }
  return wrap;
}

const judged = (cell) => (/^contradicts/.test(cell) ? "bad" : cell === "consistent" ? "good" : "");

/** The interval to show first: what was asked for last counts most. */
export function bestIntervals(answer) {
  for (const kind of ["sample", "bootstrap", "profile", "likelihood"]) if (answer.intervals[kind]) return answer.intervals[kind];
  return {};
}

export function clear(parent) {
  for (const chart of charts) chart.remove();
  charts = [];
  parent.replaceChildren();
  parent.hidden = true;
}

export function showFit(parent, answer) {
  clear(parent);
  parent.hidden = false;
  const estimates = section(parent, "Estimates");
  tableOf(estimates, answer.parameters.header, answer.parameters.rows);
  for (const text of answer.amounts) estimates.append(element("p", "muted after", text));
  const kinds = Object.keys(answer.intervals);
  if (kinds.length > 1) {
    tableOf(section(parent, "95 % intervals of every kind"), ["parameter", ...kinds.map((kind) => KINDS[kind] ?? kind)],
      Object.keys(answer.theta).filter((name) => !answer.fixed.includes(name)).map((name) => [
        name, ...kinds.map((kind) => { const pair = answer.intervals[kind][name]; return pair ? `${shown(pair[0])} to ${shown(pair[1])}` : "–"; }),
      ]));
  }
  if (answer.solutions) tableOf(section(parent, "Solutions that fit as well"), answer.solutions.header, answer.solutions.rows);
  tableOf(section(parent, "Equations and noise"), answer.states.header, answer.states.rows, judged);
  residuals(section(parent, "Residuals: data minus fit", true), answer);
  if (answer.correlations) {
    const more = folded(parent, "Correlations of the estimates");
    more.classList.add("wide");
    tableOf(more, answer.correlations.header, answer.correlations.rows);
  }
  if (answer.profiles.length) profiles(section(parent, "Profiles: how fast the likelihood falls", true), answer);
  for (const [kind, draws] of Object.entries(answer.draws)) {
    histograms(section(parent, kind === "sample" ? "Posterior draws" : "Refits of the bootstrap", true), draws, answer);
  }
  if (answer.unknown?.length) unknownFunctions(section(parent, "Unknown functions"), answer.unknown);
  remarks(parent, answer);
  command(parent, answer.command);
  help(parent);
}

export function showPopulation(parent, answer, job) {
  clear(parent);
  parent.hidden = false;
  tableOf(section(parent, "Population", true), answer.parameters.header, answer.parameters.rows);
  for (const table of answer.tables) tableOf(section(parent, table.title), table.header, table.rows);
  images(parent, answer, job);
  remarks(parent, answer);
  command(parent, answer.command);
  help(parent);
}

/** What was asked for beside a fit: its sentence, tables and pictures; on: tried(step), planned(add, last). */
export function showStudy(parent, answer, job, stale, on) {
  const box = parent.appendChild(element("section", "study"));
  box.dataset.study = answer.kind;
  const head = box.appendChild(element("div", "wide study-head"));
  head.append(element("h2", "", answer.title), element("p", `study-headline ${stale ? "" : answer.tone}`, answer.headline));
  if (stale) head.append(element("p", "stale", "The model has changed since."));
  const offers = head.appendChild(element("div", "next"));
  if (!stale) for (const step of answer.next) offers.append(on.button(step));
  if (answer.options) offers.append(plan(answer.options, on.planned));
  for (const table of answer.tables) tableOf(section(box, table.title, answer.tables.length === 1), table.header, table.rows);
  images(box, answer, job);
  remarks(box, answer);
  command(box, answer.command);
}

/** How many samples, until when. */
function plan({ add, last }, planned) {
  const form = element("form", "plan");
  const field = (words, value, name) => {
    const label = form.appendChild(element("label", "", words)), input = label.appendChild(element("input"));
    Object.assign(input, { value, inputMode: "decimal", autocomplete: "off", placeholder: name === "last" ? "any time" : "" });
    return input;
  };
  const [count, end] = [field("Samples", String(add), "add"), field("until", last === null ? "" : String(last), "last")];
  const button = form.appendChild(element("button", "", "Plan again"));
  button.type = "submit";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const until = end.value.trim().replace(",", ".");
    planned(Number(count.value), until === "" ? null : Number(until));
  });
  return form;
}

function remarks(parent, answer) {
  const words = [...answer.notes ?? [], ...answer.facts], warnings = answer.warnings ?? [];
  if (!words.length && !warnings.length) return;
  const list = section(parent, "Notes", true).appendChild(element("ul"));
  for (const text of warnings) list.append(element("li", "warning", text));
  for (const text of words) list.append(element("li", "", text));
}

/** The pictures of the report, as soon as they are drawn. */
function images(parent, answer, job) {
  for (const { file, title, caption } of answer.pictures.filter((p) => !job.files || job.files.includes(p.file))) {
    const box = section(parent, title, true);
    if (caption) box.append(element("p", "muted", caption));
    if (!job.files) { box.append(element("p", "muted", "This picture is being drawn …")); continue; }
    const image = box.appendChild(element("div", "picture-wrap")).appendChild(element("img", "picture"));
    image.alt = title;
    pictureAddress(job.id, file).then((address) => { image.src = address; }, () => { image.alt = `${title}: the picture is not there any longer`; });
  }
}

function unknownFunctions(parent, found) {
  const grid = parent.appendChild(element("div", "small-charts"));
  for (const { label, arguments: names, x, y, low, high, seen } of found) {
    if (!x) { parent.append(element("p", "muted", `${label} of ${names.join(" and ")}: see the report.`)); continue; }
    const chart = new Chart(grid, { title: label, height: 180, x: names[0], y: label });
    const reach = range([y, low, high], 0.12);
    chart.set({ bands: [{ t: x, low, high, colour: colour(0) }], lines: [{ t: x, y, colour: colour(0) }], points: [{ t: seen, y: seen.map(() => reach[0]), colour: colour(9), alpha: 0.4 }] }, range([x], 0.02), reach);
    chart.describe(`${label} with its 95 % band over the range of the data`);
    charts.push(chart);
  }
}

function command(parent, text) {
  const box = section(parent, "The same on the command line", true);
  const line = box.appendChild(element("code", "command", text));
  line.tabIndex = 0;
}

const help = (parent) => parent.append(document.getElementById("results-help").content.cloneNode(true));

function residuals(parent, answer) {
  const grid = parent.appendChild(element("div", "small-charts"));
  const experiments = Object.values(answer.experiments);
  const columns = [...new Set(experiments.flatMap((e) => Object.keys(e.residuals)))].slice(0, 24);
  columns.forEach((name, c) => {
    const points = experiments.map((e, i) => ({ t: e.times, y: e.residuals[name] ?? [], colour: colour(experiments.length > 1 ? i : c) }));
    const reach = Math.max(...range(points.map((p) => p.y)).map(Math.abs)) * 1.1 || 1;
    const chart = new Chart(grid, { title: name, height: 130, zero: true });
    chart.set({ points }, range(points.map((p) => p.t), 0.03), [-reach, reach]);
    chart.describe(`Residuals of ${name}, within ±${shown(reach / 1.1, 2)}`);
    charts.push(chart);
  });
}

function profiles(parent, answer) {
  const grid = parent.appendChild(element("div", "small-charts"));
  for (const p of answer.profiles.slice(0, 36)) {
    const chart = new Chart(grid, { title: p.name, height: 140, note: `${shown(p.interval[0])} to ${shown(p.interval[1])}` });
    const [low, high] = p.interval.map((v) => (typeof v === "number" ? v : null));
    const lines = [{ t: p.values, y: p.likelihoods, colour: colour(0) }];
    for (const end of [low, high]) if (end !== null) lines.push({ t: [end, end], y: [-1e3, 0], colour: colour(1), dash: [4, 4], width: 1.2 });
    chart.set({ lines, points: [{ t: [p.estimate], y: [0], colour: colour(1) }] }, range([p.values], 0.02), [-4, 0.25]);
    chart.describe(`Profile of ${p.name}: 95 % interval ${shown(p.interval[0])} to ${shown(p.interval[1])}`);
    charts.push(chart);
  }
}

function histograms(parent, draws, answer) {
  const grid = parent.appendChild(element("div", "small-charts"));
  for (const [name, values] of Object.entries(draws).slice(0, 36)) {
    const numbers = values.filter((v) => v !== null).sort((a, b) => a - b);
    if (numbers.length < 2) continue;
    const [low, high] = range([numbers], 0.01), bins = 24, count = new Array(bins).fill(0);
    for (const v of numbers) count[Math.min(bins - 1, Math.floor(((v - low) / (high - low)) * bins))] += 1;
    const t = [], y = [];
    count.forEach((n, i) => { for (const edge of [i, i + 1]) { t.push(low + ((high - low) * edge) / bins); y.push(n); } });
    const chart = new Chart(grid, { title: name, height: 130 });
    const estimate = answer.theta[name], top = Math.max(...count);
    const lines = [{ t, y, colour: colour(0), width: 1.2 }, { t: [estimate, estimate], y: [0, top], colour: colour(1), dash: [4, 4], width: 1.4 }];
    chart.set({ bands: [{ t, low: y.map(() => 0), high: y, colour: colour(0), alpha: 0.3 }], lines }, [low, high], [0, 1.08 * top]);
    chart.describe(`${name}: ${numbers.length} draws, median ${shown(numbers[numbers.length >> 1])}`);
    charts.push(chart);
  }
}

export function showComparison(parent, answer) {
  clear(parent);
  parent.hidden = false;
  const names = Object.keys(answer.fits);
  const labelled = (name) => {
    const i = names.indexOf(name), label = element("span"), swatch = label.appendChild(element("span", "swatch"));
    swatch.style.background = colour(i);
    label.append(`${LETTERS[i] ?? i + 1}  ${name}`);
    return label;
  };
  const models = section(parent, "Models, the best first", true);
  if (answer.table) tableOf(models, answer.table.header, answer.table.rows.map(([name, ...cells]) => [labelled(name), ...cells]));
  const rows = (answer.rows ?? []).map((row) => {
    const verdicts = answer.verdicts[row.name] ?? {};
    const wrong = Object.keys(verdicts).filter((s) => verdicts[s] === "contradicts");
    const verdict = wrong.length ? `contradicts: ${wrong.join(", ")}` : Object.values(verdicts).includes("not judged") ? "as a whole" : "consistent";
    return [labelled(row.name), verdict, shown(row.bic, 4), row.weight < 0.001 ? "<0.001" : shown(row.weight, 2), shown(row.aicc, 4), shown(row.loglik, 4), String(row.parameters), shown(row.risk, 4), shown(row.p, 2)];
  });
  const header = ["model", "equations", "BIC", "weight", "AICc", "log L", "unknowns", "risk", "p"];
  if (rows.length) tableOf(models, header, rows, (cell) => (judged(cell) || cell === "as a whole" ? `words ${judged(cell)}` : ""));
  const list = section(parent, "In words", true).appendChild(element("ul"));
  for (const text of [...answer.sentences, ...answer.notes]) list.append(element("li", "", text));
  const parameters = [...new Set(Object.values(answer.fits).flatMap((f) => Object.keys(f.theta)))];
  tableOf(section(parent, "Estimates"), ["parameter", ...names.map((_, i) => LETTERS[i] ?? String(i + 1))],
    parameters.map((p) => [p, ...names.map((n) => (p in answer.fits[n].theta ? shown(answer.fits[n].theta[p], 4) : "–"))]));
  command(parent, answer.command);
  help(parent);
}

/** Buttons for the files of a job. */
export function files(parent, job, get) {
  parent.replaceChildren();
  if (!job.files) {
    parent.append(element("p", "", "The report is being written …"));
    return;
  }
  const order = ["report.html", "comparison.html", "fit.json", "comparison.json", "states.csv", "comparison.csv"];
  const names = [...job.files].sort((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
  for (const name of job.files.length ? [...names, "everything.zip"] : []) {
    const label = FILES[name] ?? (name.endsWith(".ode") ? "Model" : name === "everything.zip" ? "Everything" : name.endsWith(".png") ? "Picture" : "Data");
    const button = parent.appendChild(element("button", "", label));
    button.type = "button";
    button.append(element("span", "", name));
    button.addEventListener("click", () => get(name));
  }
  if (!job.files.length) parent.append(element("p", "", "Writing was cancelled; fit again to have files."));
}
