// What can be said about a parameter besides its value, by clicking: scale, bounds, prior, where the search starts.
import { shown } from "./charts.js";
import { element } from "./editor.js";

const PRIORS = {
  normal: ["mean", "sd"], lognormal: ["median", "sd of log"], uniform: ["from", "to"],
};
const round = (value, digits = 3) => Number(value.toPrecision(digits));

/** Numbers to begin with: wide, around where the slider stands. */
function wide(family, value, [low, high]) {
  if (family === "uniform") return [round(low), round(high)];
  if (family === "lognormal") return [round(Math.abs(value) || 1), 1];
  return [round(value), round(Math.abs(value) / 2 || 1)];
}

export function options(row, span, now, on) {
  const box = element("div", "options");
  const line = (title) => {
    const own = box.appendChild(element("div", "option"));
    own.append(element("span", "option-name", title));
    return own.appendChild(element("div", "choices"));
  };
  const choice = (parent, words, pressed, label, act) => {
    const button = parent.appendChild(element("button", "choice", words));
    button.type = "button";
    button.dataset.focus = `${label} ${row.name}`;
    if (pressed !== null) button.setAttribute("aria-pressed", String(pressed));
    button.setAttribute("aria-label", `${label} of ${row.name}`);
    button.addEventListener("click", act);
  };

  const scale = line("Scale");
  choice(scale, row.log && !row.scale ? "automatic: positive, log" : "automatic", !row.scale, "Scale not declared", () => on.scaled(row.name, null));
  choice(scale, "log", row.scale === "log", "Log scale", () => on.scaled(row.name, "log"));
  choice(scale, "linear, any sign", row.scale === "linear", "Linear scale", () => on.scaled(row.name, "linear"));

  const bounds = line("Bounds");
  choice(bounds, "none", row.low === null && row.high === null, "No bounds", () => on.bounded(row.name, null, null));
  choice(bounds, "positive", row.low === 0 && row.high === null, "Positive values", () => on.bounded(row.name, 0, null));
  choice(bounds, `${shown(round(span[0]))} to ${shown(round(span[1]))}`, null, "Ends of the slider as bounds", () => on.bounded(row.name, round(span[0]), round(span[1])));

  const prior = line("Prior"), [family, ...numbers] = row.prior ?? [null];
  const select = prior.appendChild(element("select"));
  select.setAttribute("aria-label", `Prior of ${row.name}`);
  select.dataset.focus = `prior ${row.name}`;
  for (const name of ["none", ...Object.keys(PRIORS)]) select.add(new Option(name, name));
  if (family && !(family in PRIORS)) select.add(new Option(family, family));
  select.value = family ?? "none";
  const write = (kind, pair) => on.distributed(row.name, kind === "none" ? null : `${kind}(${pair[0]}, ${pair[1]})`);
  select.addEventListener("change", () => write(select.value, wide(select.value, now(), span)));
  numbers.forEach((value, i) => {
    const label = prior.appendChild(element("label", "", PRIORS[family]?.[i] ?? ""));
    const input = label.appendChild(element("input"));
    Object.assign(input, { value: String(value), inputMode: "decimal", autocomplete: "off" });
    input.dataset.focus = `prior ${i} ${row.name}`;
    input.setAttribute("aria-label", `Prior of ${row.name}, ${PRIORS[family]?.[i] ?? i + 1}`);
    input.addEventListener("change", () => {
      const typed = Number(input.value.trim().replace(",", ".").replace("−", "-"));
      if (input.value.trim() === "" || !Number.isFinite(typed)) { input.value = String(value); return; }
      numbers[i] = typed;
      write(family, numbers);
    });
  });

  const search = line("Search");
  choice(search, "starts anywhere", row.start === null, "Any start", () => on.started(row.name, null));
  choice(search, row.start === null ? "starts here" : `starts at ${shown(row.start)}`, row.start !== null, "Start here", () => on.started(row.name, now()));

  if (row.kind === "parameter" && on.several()) {
    const extent = line("Value");
    choice(extent, "one for all", !row.local, "One value", () => on.spread(row.name, false));
    choice(extent, "one per experiment", row.local, "Own values", () => on.spread(row.name, true));
  }
  return box;
}
