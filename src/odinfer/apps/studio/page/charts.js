// Charts: uPlot has the axes, zoom and cursor; points, curves and bands are drawn here, each with times of its own.
import { element } from "./editor.js";
import { SVG, copy, picture, save } from "./picture.js";

const { uPlot } = globalThis;  // which the page has loaded before

const LIGHT = ["#2456b3", "#c2571a", "#1d7a4f", "#8b3fa8", "#b3263a", "#1a7f96", "#7a6a12", "#5b4bd6", "#a04a78", "#4d5b6b"];
const DARK = ["#7fa8f0", "#f0a066", "#6fcf97", "#cf9af0", "#ff8f96", "#66c9dd", "#d9c860", "#a89cff", "#f097c4", "#aab6c6"];
const CLOUD = 600;  // points of a chart that hide a line under them
const dark = matchMedia("(prefers-color-scheme: dark)");

export const colour = (i) => (dark.matches ? DARK : LIGHT)[i % LIGHT.length];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const every = new Set();
let observer = null;
/** What tells charts whether they are seen: those that are not are drawn when they come into sight, or are printed. */
function sight() {
  if (observer) return observer;
  addEventListener("beforeprint", () => { for (const chart of every) chart.catchUp(); });
  return observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      target.chart.inSight = isIntersecting;
      if (isIntersecting) target.chart.catchUp();
    }
  }, { rootMargin: "300px" });
}
dark.addEventListener("change", () => { for (const chart of every) chart.rebuild(); });

/** A few significant digits. */
export function shown(value, digits = 4) {
  if (typeof value !== "number" || !Number.isFinite(value)) return value === null || value === undefined ? "–" : String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e").replace(/\.?0+e/, "e").replace("-", "−");
  const text = size >= 10 ** digits ? value.toFixed(0) : value.toPrecision(digits);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace(/^-/, "−");
}

/** Charts over the same time: a zoom or a cursor in one is one in all. */
export class Group {
  constructor() { Object.assign(this, { zoom: null, charts: new Set(), key: `group-${++Group.count}` }); }

  zoomed(from, range) {
    this.zoom = range;
    for (const chart of this.charts) if (chart !== from) chart.show();
  }
}
Group.count = 0;

export class Chart {
  /** height: of the plot in CSS pixels; zero: a line at y = 0. */
  constructor(parent, { title, note = "", height = 230, zero = false, x = "", y = "", group = new Group() }) {
    Object.assign(this, { height, zero, group, log: false, labels: [x, y], layers: { points: [], lines: [], bands: [], moving: [] }, x: [0, 1], y: [0, 1] });
    this.card = parent.appendChild(element("div", "chart"));
    const head = this.card.appendChild(element("header"));
    const name = head.appendChild(element("h3", "", title));
    if (note) name.append(" ", element("small", "", note));
    this.readout = head.appendChild(element("span", "readout"));
    this.card.appendChild(element("div", "exports")).append(...this.exports(title));
    group.charts.add(this);
    this.plot = this.card.appendChild(element("div", "plot"));
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", title);
    this.read = () => "";
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.card);
    this.inSight = true;
    this.card.chart = this;
    sight().observe(this.card);
    every.add(this);
  }

  /** Buttons that copy the picture, and save it. */
  exports(title) {
    const draw = () => picture(this, title);
    const button = (words, label, act) => {
      const found = element("button", "quiet", words);
      Object.assign(found, { type: "button", title: label });
      found.setAttribute("aria-label", `${label}: ${title}`);
      found.addEventListener("click", () => act(found));
      return found;
    };
    const saved = button("Save SVG", "Save the picture as an SVG file", () => save(new Blob([draw()], { type: SVG }), `${title}.svg`));
    if (!navigator.clipboard) return [saved];  // which browsers have on this computer only
    const copied = button("Copy", "Copy the picture as SVG", async (own) => {
      own.textContent = await copy(draw()) ? "Copied" : "Not allowed";
      setTimeout(() => { own.textContent = "Copy"; }, 1500);
    });
    return [copied, saved];
  }

  describe(words) { this.plot.setAttribute("aria-label", words); }

  remove() {
    this.observer.disconnect();
    sight().unobserve(this.card);
    every.delete(this);
    this.group.charts.delete(this);
    this.u?.destroy();
    this.card.remove();
  }

  rebuild() {
    this.u?.destroy();
    this.u = null;
    this.resize();
  }

  resize() {
    const width = Math.floor(this.plot.clientWidth);
    if (width < 40) return;
    if (!this.u) this.u = new uPlot(this.options(width), this.data(), this.plot);
    else if (this.u.width !== width) this.u.setSize({ width, height: this.height });
  }

  /** The range of x that is in sight. */
  get span() { return this.group.zoom ?? this.x; }

  catchUp() {
    if (this.late && this.u) this.show();
    this.late = false;
  }

  show() { if (this.u) this.u.setData(this.data()); }

  data() { return [[this.x[0], this.x[1]], [this.y[0], this.y[1]]]; }

  options(width) {
    const ink = css("--muted"), grid = { stroke: css("--line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: ink, grid, ticks: { ...grid, size: 4 }, font, labelFont: font };
    return {
      width, height: this.height,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false, sync: { key: this.group.key } },
      scales: { x: { time: false, range: () => this.span }, y: { range: () => this.y, distr: this.log ? 3 : 1 } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        { ...axis, size: 34, space: 60, label: this.labels[0] || undefined, labelSize: 18, values: (u, values) => values.map((v) => shown(v, 6)) },
        { ...axis, label: this.labels[1] || undefined, labelSize: 18, size: (u, values) => 14 + 7 * Math.max(5, ...(values ?? []).map((v) => v.length)), space: this.height < 160 ? 22 : 36, values: (u, values) => values.map((v) => (this.log && !/^[125]/.test(v?.toExponential() ?? "") ? "" : shown(Number(v?.toPrecision(9)), 6))) },
      ],
      hooks: { draw: [(u) => this.draw(u)], setCursor: [(u) => this.cursor(u)], setSelect: [(u) => this.select(u)], ready: [(u) => this.ready(u)] },
    };
  }

  ready(u) { u.over.addEventListener("dblclick", () => this.zoom(null)); }

  select(u) {
    const { left, width } = u.select;
    if (width < 4) return;
    const range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom(range);
  }

  zoom(range) {
    this.group.zoomed(this, range);
    this.show();
  }

  /** x and y: ranges; layers: what to draw. If only the lines of `moving` differ, the rest is not drawn again. */
  set(layers, x, y, log = false) {
    const alone = Object.keys(layers).every((name) => name === "moving" || layers[name] === this.layers[name]);
    Object.assign(this.layers, layers);
    if (log !== this.log) { this.log = log; [this.x, this.y] = [x, y]; return this.rebuild(); }
    this.late = !this.inSight;
    const same = this.x[0] === x[0] && this.x[1] === x[1] && this.y[0] === y[0] && this.y[1] === y[1];
    this.x = x;
    this.y = y;
    if (!this.u) return this.resize();
    if (this.late) return;
    if (!same) this.u.setData(this.data()); else if (alone && this.still) this.move(); else this.u.redraw(false);
  }

  cursor(u) {
    const { left } = u.cursor;
    this.readout.textContent = left === null || left === undefined || left < 0 ? "" : this.read(u.posToVal(left, "x"));
  }

  /** Draw what stands still, keep it as a picture, and draw over it what moves. */
  draw(u) {
    const { canvas } = u.ctx;
    this.cloud = this.layers.points.reduce((sum, { t }) => sum + t.length, 0) > CLOUD;
    this.clipped(u, (ratio) => this.drawStill(u, ratio));
    this.still = null;
    if (this.layers.moving.length) {
      this.still = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
      this.still.getContext("2d").drawImage(canvas, 0, 0);
    }
    this.clipped(u, (ratio) => this.drawMoving(u, ratio));
  }

  move() {
    const { u } = this, { canvas } = u.ctx;
    u.ctx.clearRect(0, 0, canvas.width, canvas.height);
    u.ctx.drawImage(this.still, 0, 0);
    this.clipped(u, (ratio) => this.drawMoving(u, ratio));
  }

  clipped(u, act) {
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    act(devicePixelRatio || 1);
    ctx.restore();
  }

  /** Functions from values to pixels of the canvas: those of uPlot, without asking it for every point. */
  pixels(u) {
    return ["x", "y"].map((name) => {
      const { min, max } = u.scales[name], log = name === "y" && this.log;
      const scale = log ? (v) => Math.log(Math.max(v, min / 10)) : (v) => v;
      const [low, from] = [scale(min), u.valToPos(min, name, true)];
      const slope = (u.valToPos(max, name, true) - from) / (scale(max) - low);
      return (v) => from + slope * (scale(v) - low);
    });
  }

  drawStill(u, ratio) {
    const { ctx } = u, [X, Y] = this.pixels(u);
    if (this.zero) {
      ctx.strokeStyle = css("--muted");
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(u.bbox.left, Y(0));
      ctx.lineTo(u.bbox.left + u.bbox.width, Y(0));
      ctx.stroke();
    }
    for (const { t, low, high, colour, alpha = 0.18 } of this.layers.bands) {
      ctx.globalAlpha = alpha;
      ctx.fillStyle = colour;
      let from = 0;
      for (let i = 0; i <= t.length; i++) {
        if (i < t.length && low[i] !== null && high[i] !== null) continue;
        if (i > from) {
          ctx.beginPath();
          for (let j = from; j < i; j++) ctx.lineTo(X(t[j]), Y(high[j]));
          for (let j = i - 1; j >= from; j--) ctx.lineTo(X(t[j]), Y(low[j]));
          ctx.fill();
        }
        from = i + 1;
      }
      ctx.globalAlpha = 1;
    }
    // Lines lie over a cloud of points, and under points that can be told apart.
    if (this.cloud) this.drawPoints(u, ratio);
    this.drawLines(u, ratio, this.layers.lines);
  }

  drawMoving(u, ratio) {
    this.drawLines(u, ratio, this.layers.moving);
    if (!this.cloud) this.drawPoints(u, ratio);
  }

  drawLines(u, ratio, lines) {
    const { ctx } = u, [X, Y] = this.pixels(u);
    for (const { t: times, y: values, colour, dash = [], width = 2, alpha = 1, path = false } of lines) {
      const { t, y } = path ? { t: times, y: values } : within(times, values, u.scales.x.min, u.scales.x.max);
      ctx.globalAlpha = alpha;
      ctx.strokeStyle = colour;
      ctx.lineWidth = width * ratio;
      ctx.setLineDash(dash.map((d) => d * ratio));
      ctx.beginPath();
      let pen = false;
      for (let i = 0; i < t.length; i++) {
        if (y[i] === null || !Number.isFinite(y[i])) { pen = false; continue; }
        const at = Math.max(-1e5, Math.min(1e5, Y(y[i])));
        if (pen) ctx.lineTo(X(t[i]), at); else ctx.moveTo(X(t[i]), at);
        pen = true;
      }
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.globalAlpha = 1;
    }
  }

  drawPoints(u, ratio) {
    const { ctx } = u, [X, Y] = this.pixels(u);
    for (const { t, y, limit, colour, alpha = 0.9 } of this.layers.points) {
      ctx.globalAlpha = alpha;
      ctx.fillStyle = ctx.strokeStyle = colour;
      ctx.lineWidth = 1.5 * ratio;
      const radius = (t.length > 300 ? 1.6 : 3.1) * ratio;
      for (let i = 0; i < t.length; i++) {
        if (y[i] === null) continue;
        const x = X(t[i]), at = Y(y[i]);
        if (t.length > 300 && !limit?.[i]) { ctx.fillRect(x - radius, at - radius, 2 * radius, 2 * radius); continue; }
        ctx.beginPath();
        if (limit?.[i]) {  // beyond a limit of detection: an arrow to where it lies
          const down = -limit[i] * 9 * ratio;
          ctx.moveTo(x - 4 * ratio, at); ctx.lineTo(x + 4 * ratio, at);
          ctx.moveTo(x, at); ctx.lineTo(x, at + down);
          ctx.moveTo(x - 3 * ratio, at + down * 0.6); ctx.lineTo(x, at + down); ctx.lineTo(x + 3 * ratio, at + down * 0.6);
          ctx.stroke();
        } else {
          ctx.arc(x, at, radius, 0, 2 * Math.PI);
          ctx.fill();
        }
      }
      ctx.globalAlpha = 1;
    }
  }
}

/** What of a curve is in sight: a million dashes beyond the edge of a picture would take seconds. */
export function within(t, y, low, high) {
  const from = t.findIndex((time) => time >= low), to = t.findLastIndex((time) => time <= high);
  if (!(t[0] < low) && !(t.at(-1) > high)) return { t, y };
  const first = from > 0 ? [at(t, y, low)] : [], last = to >= 0 && to < t.length - 1 ? [at(t, y, high)] : [];
  const inside = from < 0 || to < from ? [0, 0] : [from, to + 1];
  return {
    t: [...first.map(() => low), ...t.slice(...inside), ...last.map(() => high)], y: [...first, ...y.slice(...inside), ...last],
  };
}

/** The least and the largest of some numbers with room around them. */
export function range(values, room = 0.06) {
  let low = Infinity, high = -Infinity;
  for (const list of values) {
    for (const v of list) {
      if (v === null || !Number.isFinite(v)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  if (low > high) return [0, 1];
  const span = high - low || Math.abs(high) || 1;
  return [low - room * span, high + room * span];
}

/** A range that reaches to another one, but by no more than a share of its own length to either side; in so many steps. */
export function widened([low, high], other, share, steps = 0) {
  const most = share * (high - low), step = most / steps;
  const reach = (beyond) => Math.min(Math.max(0, steps ? Math.ceil(beyond / step) * step : beyond), most);
  return [low - reach(low - other[0]), high + reach(other[1] - high)];
}

/** Where in sorted times a time lies: the value there, between its neighbours. */
export function at(t, y, time) {
  if (!t.length || time < t[0] || time > t[t.length - 1]) return null;
  let low = 0, high = t.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (t[middle] <= time) low = middle; else high = middle;
  }
  if (y[low] === null || y[high] === null) return null;
  const share = t[high] === t[low] ? 0 : (time - t[low]) / (t[high] - t[low]);
  return y[low] + share * (y[high] - y[low]);
}
