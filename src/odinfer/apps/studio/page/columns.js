// What the columns of a table are, and how each scatters: lists to choose from. What is chosen about noise becomes text.
import { element } from "./editor.js";
import { distribution, distributionWords } from "./statements.js";

const UNUSED = "-";
/** Not yet in the model: what the column measures is to be written. */
export const MEASURES = "=";

const FAMILIES = {
  normal: "normal", lognormal: "log-normal: an error in percent", student: "Student's t: now and then an outlier",
  laplace: "Laplace: outliers", loglaplace: "log-Laplace: in percent, outliers", poisson: "Poisson: counts",
  negbinomial: "negative binomial: counts that scatter more", binomial: "binomial: so many of n",
};

/** One column; `now` has choice, u, text() and the name of the time, `on` assigned(column, role) and scatters(name, words). */
export function columnBox(c, now, on) {
  const { choice, u, time } = now;
  const box = element("div", "column"), name = box.appendChild(element("div"));
  name.append(element("b", "", c.name), element("span", "cells", c.cells.join(", ")));
  box.append(element("span", "muted", "→"));
  const choose = box.appendChild(element("select"));
  choose.setAttribute("aria-label", `What the column ${c.name} is`);
  choose.dataset.focus = `column ${c.name}`;
  const given = choice.names[c.name];
  const natural = c.name === time ? "time" : c.role && c.role !== "time" ? c.role : u?.assignable.includes(c.name) || u?.covariates.includes(c.name) ? c.name : UNUSED;
  const options = new Map([["time", "the time"], ["experiment", "experiment"]]);
  for (const n of u?.assignable ?? []) options.set(n, u.inputs.includes(n) || u.parameters.some((p) => p.name === n) ? `${n} (input)` : n);
  if (u?.covariates.includes(c.name)) options.set(c.name, `${c.name} (covariate)`);
  for (const n of [c.role, given]) if (n && !options.has(n)) options.set(n, u?.dosing.includes(n) ? `doses: ${n}` : n);
  if (natural === UNUSED && u) options.set(MEASURES, "something else of the model …");
  options.set(UNUSED, "not used");
  for (const [value, label] of options) choose.add(new Option(label, value));
  choose.value = given ?? natural;
  choose.classList.toggle("set", given !== undefined || choice.time === c.name);
  choose.addEventListener("change", () => on.assigned(c.name, choose.value));
  if (u?.observable.includes(choose.value)) box.append(noise(choose.value, now, on));
  return box;
}

/** What a column is, in one word for its chip: time, experiment, doses, errors, observed, covariate or ignored. */
export function roleOf(c, choice, u) {
  const given = choice.names[c.name];
  if (given === UNUSED) return "ignored";
  if (choice.time ? c.name === choice.time : (given ?? c.role) === "time") return "time";
  const name = given ?? (c.role && c.role !== "time" ? c.role : c.name);
  if (u?.dosing.includes(name)) return "doses";
  if (name.startsWith("errors of ")) return "errors";
  if (name === "experiment") return "experiment";
  if (u?.observed.includes(name)) return "observed";
  if (u?.inputs.includes(name)) return "input";
  if (u?.covariates.includes(name)) return "covariate";
  return u ? "ignored" : c.role ?? "observed";
}

/** The first rows as they stand in the file, with the role of every column above them. */
export function preview(parent, { preview: { names, rows }, columns }, role) {
  const table = element("table", "rows"), head = table.createTHead().insertRow();
  for (const name of names) {
    const cell = head.appendChild(element("th")), column = columns.find((c) => c.name === name);
    cell.scope = "col";
    const said = column ? role(column) : "ignored";
    cell.append(element("span", `chip ${said}`, said), element("span", "", name));
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const cell of row) line.insertCell().textContent = cell;
  }
  parent.replaceChildren(table);
}

/** How what is observed under a name scatters about what is predicted. */
function noise(name, { u, text }, on) {
  // Asked for again when something is chosen: the text may have changed since this was drawn.
  const own = () => distribution(text(), name, u.families) ?? { family: "normal", given: [name] };
  const box = element("div", "noise"), said = own();
  const { refused = {}, by_row: byRow = false, largest = null } = u.scatter[name] ?? {};
  const choose = box.appendChild(element("label", "family", "noise")).appendChild(element("select"));
  choose.setAttribute("aria-label", `Noise of ${name}`);
  choose.dataset.focus = `noise ${name}`;
  for (const family of Object.keys(u.families)) {
    const option = new Option(FAMILIES[family] ?? family, family);
    if (family in refused && family !== said.family) Object.assign(option, { disabled: true, text: `${option.text} (${refused[family]})` });
    choose.add(option);
  }
  choose.value = said.family;
  // A state or definition plus normal noise needs no words.
  const write = (family, given) => {
    const plain = family === "normal" && given[0] === name && given.length === 1 && u.silent.includes(name);
    on.scatters(name, plain ? null : distributionWords(family, given, u.families[family].arguments));
  };
  choose.addEventListener("change", () => {
    const { arguments: titles, least } = u.families[choose.value];
    write(choose.value, titles.slice(0, least).map((_, i) => (i ? String(largest ?? 1) : own().given[0])));
  });
  const family = u.families[said.family];
  (family?.arguments ?? []).forEach((title, i) => {
    const label = box.appendChild(element("label", i ? "" : "predicted", i ? title : "about")), input = label.appendChild(element("input"));
    Object.assign(input, { value: said.given[i] ?? "", autocomplete: "off", spellcheck: false });
    input.placeholder = byRow && title === "sd" ? "by row" : String(family.defaults[title] ?? "estimated");
    input.dataset.focus = `noise ${i} ${name}`;
    input.setAttribute("aria-label", i ? `Noise of ${name}, ${title}` : `What is measured as ${name}`);
    input.addEventListener("change", () => {
      const now = own(), { arguments: titles, least } = u.families[now.family], at = i ? titles.indexOf(title) : 0;
      if (at < 0) return;
      const given = titles.map((_, j) => (j === at ? input.value.trim() : now.given[j] ?? ""));
      if (at < least && !given[at]) { input.value = now.given[at]; return; }
      while (!given.at(-1)) given.pop();
      write(now.family, given);
    });
  });
  return box;
}

/** The choice once a column is something else; what was that before is not used, unless it is told otherwise. */
export function reassigned(choice, table, u, column, role) {
  const names = { ...choice.names };
  if (role === "time") {
    delete names[column];
    return { ...choice, time: column, names };
  }
  const of = (c) => names[c.name] ?? c.role ?? c.name;
  for (const c of role === UNUSED ? [] : table.columns.filter((other) => other.name !== column && of(other) === role)) {
    if (c.name === role || c.role === role) names[c.name] = UNUSED; else delete names[c.name];
  }
  const own = table.columns.find((c) => c.name === column)?.role ?? null;
  const plainly = role === column || (role === own && role !== UNUSED) || (role === UNUSED && !own && !u?.assignable.includes(column));
  if (plainly) delete names[column]; else names[column] = role;
  return { ...choice, time: choice.time === column ? null : choice.time, names };
}
