// A slider for every parameter and free initial value, with bounds, and the estimate once there is one.
import { shown } from "./charts.js";
import { element } from "./editor.js";

const STEPS = 1000;

/** The keys under which values of a parameter or initial value are kept: one, or one per experiment. */
export function keysOf(row, experiments) {
  return row.local && experiments.length > 1 ? experiments.map((e) => `${row.name}[${e}]`) : [row.name];
}

/** Parameters and free initial values, with the value to begin with. */
export function rowsOf(u) {
  const several = u.experiments.length > 1;
  const rows = u.parameters.map((p) => ({ ...p, kind: "parameter", first: () => middle(p) }));
  for (const state of u.free) {
    const first = (experiment) => {
      const course = u.experiments.find((e) => e.name === experiment) ?? u.experiments[0];
      return course?.first[state] ?? 1;
    };
    rows.push({ name: `${state}(0)`, kind: "initial", local: several, low: null, high: null, fixed: null, log: false, first });
  }
  return rows;
}

function middle(p) {
  if (p.fixed !== null) return p.fixed;
  if (p.start !== null) return p.start;
  const { low, high } = p;
  if (low !== null && high !== null) return low > 0 && high / low > 20 ? Math.sqrt(low * high) : (low + high) / 2;
  if (low !== null) return low >= 1 ? 2 * low : low + 1;
  if (high !== null) return high > 1 ? 1 : high - 1;
  return 1;
}

/** The ends of a slider: bounds that are declared, or what shows the value well. */
export function ends(row, value, kept) {
  const far = Math.abs(value) || 1;
  let low = row.low, high = row.high;
  const inside = kept && value >= kept[0] && value <= kept[1];
  if (low === null) low = inside ? kept[0] : row.log ? far / 100 : value < 0 ? -4 * far : 0;
  if (high === null) high = inside ? kept[1] : row.log ? far * 100 : value < 0 ? Math.max(0, low + far) : 4 * far;
  if (row.log && low <= 0) low = Math.min(far, high) / 1000;
  return low < high ? [low, high] : [low, low + far];
}

const position = (row, [low, high], value) =>
  row.log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
const valueAt = (row, [low, high], share) => (row.log ? low * (high / low) ** share : low + share * (high - low));

export class Sliders {
  /** on: moved(key list, value), bounded(name, low, high), fixed(name, value or null); value(key) is the present one. */
  constructor(parent, on) {
    Object.assign(this, { parent, on, ranges: {}, typing: null, waiting: null });
    // What somebody is typing is not drawn over.
    parent.addEventListener("input", ({ target }) => { if (target.type !== "range") this.typing = target; });
    parent.addEventListener("change", () => { this.typing = null; }, true);
    parent.addEventListener("focusout", () => {
      this.typing = null;
      if (this.waiting) this.draw(...this.waiting);
    });
  }

  /** rows with `keys` to set; values by key; estimates: key → {value, low, high}. */
  draw(rows, values, estimates) {
    this.waiting = this.typing?.isConnected ? [rows, values, estimates] : null;
    if (this.waiting) return;
    const focus = document.activeElement?.dataset?.focus;
    this.parent.replaceChildren(...rows.map((row) => this.row(row, values, estimates)));
    if (focus) this.parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  }

  row(row, values, estimates) {
    const key = row.keys[0], value = values[key];
    const span = (this.ranges[row.name] = ends(row, value, this.ranges[row.name]));
    const box = element("div", "slider");
    const name = box.appendChild(element("label", "name", row.name));
    const note = [row.log ? "log" : "", row.local && row.keys.length > 1 ? (row.keys.every((k) => values[k] === value) ? "all alike" : "differ") : row.local ? "own" : "", row.prior ?? ""];
    if (note.some(Boolean)) name.append(element("small", "", note.filter(Boolean).join(", ")));
    const track = box.appendChild(element("div", "track"));
    const slider = track.appendChild(element("input"));
    const number = box.appendChild(element("input", "value"));
    const id = `slider-${row.name}`;
    Object.assign(slider, { type: "range", min: 0, max: STEPS, step: 1, id, disabled: row.fixed !== null });
    name.htmlFor = id;
    slider.dataset.focus = `slider ${row.name}`;
    number.dataset.focus = `value ${row.name}`;
    Object.assign(number, { inputMode: "decimal", autocomplete: "off", disabled: row.fixed !== null });
    number.setAttribute("aria-label", `Value of ${row.name}`);
    const show = (v) => {
      slider.value = Math.round(STEPS * position(row, span, v));
      slider.setAttribute("aria-valuetext", shown(v));
      number.value = shown(v, 4).replace("−", "-");
    };
    show(value);
    slider.addEventListener("input", () => {
      const v = Number(valueAt(row, span, slider.value / STEPS).toPrecision(6));
      number.value = shown(v, 4).replace("−", "-");
      slider.setAttribute("aria-valuetext", shown(v));
      this.on.moved(row.keys, v);
    });
    number.addEventListener("change", () => {
      const v = Number(number.value.replace(",", ".").replace("−", "-"));
      if (number.value.trim() === "" || !Number.isFinite(v)) return show(value);
      this.on.moved(row.keys, v, true);
    });
    if (row.fixed === null) box.append(this.bounds(row, span));
    if (row.kind === "parameter") box.append(this.pin(row, () => Number(this.on.value(key).toPrecision(5))));
    const estimate = estimates[key];
    if (estimate && row.keys.length === 1) this.estimate(box, track, row, span, estimate);
    return box;
  }

  bounds(row, span) {
    const below = element("div", "below");
    for (const [side, i] of [["low", 0], ["high", 1]]) {
      const input = below.appendChild(element("input", side));
      const declared = row[side] !== null;
      input.value = declared ? shown(row[side]).replace("−", "-") : "";
      input.placeholder = shown(span[i], 3);
      input.inputMode = "decimal";
      input.dataset.focus = `${side} ${row.name}`;
      input.classList.toggle("declared", declared);
      input.title = declared ? "A bound, written in the model" : "The end of the slider; a number here becomes a bound";
      input.setAttribute("aria-label", `${side === "low" ? "Lower" : "Upper"} bound of ${row.name}`);
      input.addEventListener("change", () => {
        const text = input.value.trim().replace(",", ".").replace("−", "-");
        if (text !== "" && !Number.isFinite(Number(text))) { input.value = declared ? String(row[side]) : ""; return; }
        row[side] = text === "" ? null : Number(text);  // the other side may be changed before this is drawn anew
        this.on.bounded(row.name, row.low, row.high);
      });
    }
    return below;
  }

  pin(row, value) {
    const pin = element("button", "quiet pin", row.fixed === null ? "fix" : "fixed");
    pin.type = "button";
    pin.setAttribute("aria-pressed", String(row.fixed !== null));
    pin.setAttribute("aria-label", `Fix ${row.name}`);
    pin.addEventListener("click", () => this.on.fixed(row.name, row.fixed === null ? value() : null));
    return pin;
  }

  estimate(box, track, row, span, { value, low, high }) {
    const interval = low === null || low === undefined ? "" : `, 95 %: ${shown(low)} to ${shown(high)}`;
    box.append(element("div", "estimate", `estimate ${shown(value)}${interval}`));
    if (typeof low !== "number" || typeof high !== "number") return;
    const [from, to] = [low, high].map((v) => Math.min(1, Math.max(0, position(row, span, Math.max(v, row.log ? 1e-300 : v)))));
    const bar = track.appendChild(element("div", "interval"));
    bar.style.left = `calc(8px + (100% - 16px) * ${from})`;
    bar.style.width = `calc((100% - 16px) * ${Math.max(to - from, 0.004)})`;
  }
}
