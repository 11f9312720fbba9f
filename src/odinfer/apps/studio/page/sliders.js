// A slider for every parameter and free initial value, with bounds, and the estimate once there is one.
import { shown } from "./charts.js";
import { element, patient } from "./editor.js";
import { options } from "./options.js";
import { ends, position, valueAt } from "./rows.js";

const STEPS = 1000;

/** A name that goes on in a new line only where a word of it ends. */
function broken(name) {
  const words = element("span");
  words.append(...name.split(/(?<=_)|(?=\()/).flatMap((piece, i) => (i ? [element("wbr"), piece] : [piece])));
  return words;
}

export class Sliders {
  /** on: moved(key list, value), and what becomes text: bounded, fixed, started, scaled, spread, distributed, each with
   * a name first; value(key) and size(key) are what there is. */
  constructor(parent, on) {
    Object.assign(this, { on, ranges: {}, opened: new Set(), anew: patient(parent) });
  }

  /** rows with `keys` to set; values by key; estimates: key → {value, low, high}. */
  draw(rows, values, estimates) {
    this.anew(() => rows.map((row) => this.row(row, values, estimates)));
  }

  clear() { this.anew.clear(); }

  row(row, values, estimates) {
    const key = row.keys[0], value = values[key];
    const span = (this.ranges[row.name] = ends(row, value, this.ranges[row.name], this.on.size(key)));
    const box = element("div", "slider");
    const name = box.appendChild(element("label", "name"));
    name.append(broken(row.name));
    const note = [row.log ? "log" : "", row.by ? `by ${row.by}` : "", row.local && row.keys.length > 1 ? (row.keys.every((k) => values[k] === value) ? "all alike" : "differ") : row.local ? "own" : "", row.prior ? `${row.prior[0]}(${row.prior.slice(1).map((v) => shown(v)).join(", ")})` : ""];
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
    const said = row.fixed === null && !row.by;  // what varies has a distribution in the text, and no bounds
    if (said) box.append(this.bounds(row, span));
    const now = () => Number(this.on.value(key).toPrecision(5));
    const buttons = box.appendChild(element("div", "buttons"));
    if (row.kind === "parameter" && !row.by) buttons.append(this.pin(row, now));
    if (said) buttons.append(this.more(row, box, span, now));
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

  /** A button that opens what else can be said about a parameter. */
  more(row, box, span, now) {
    const button = element("button", "quiet more", "more");
    const open = this.opened.has(row.name);
    button.type = "button";
    button.dataset.focus = `more ${row.name}`;
    button.setAttribute("aria-expanded", String(open));
    button.setAttribute("aria-label", `More about ${row.name}: scale, bounds, prior`);
    const show = () => box.append(options(row, span, now, this.on));
    if (open) queueMicrotask(show);  // below all else
    button.addEventListener("click", () => {
      if (this.opened.delete(row.name)) box.querySelector(".options")?.remove();
      else { this.opened.add(row.name); show(); }
      button.setAttribute("aria-expanded", String(this.opened.has(row.name)));
    });
    return button;
  }

  estimate(box, track, row, span, { value, low, high, words }) {
    const interval = low === null || low === undefined ? "" : `, 95 %: ${shown(low)} to ${shown(high)}`;
    box.append(element("div", "estimate", `estimate ${words ?? `${shown(value)}${interval}`}`));
    if (typeof low !== "number" || typeof high !== "number") return;
    const [from, to] = [low, high].map((v) => Math.min(1, Math.max(0, position(row, span, Math.max(v, row.log ? 1e-300 : v)))));
    const bar = track.appendChild(element("div", "interval"));
    bar.style.left = `calc(8px + (100% - 16px) * ${from})`;
    bar.style.width = `calc((100% - 16px) * ${Math.max(to - from, 0.004)})`;
  }
}
