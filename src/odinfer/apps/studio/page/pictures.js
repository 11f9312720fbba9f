// The charts of the workspace: data, fits and the curves of the sliders over time, and the phase plane.
import { Chart, Group, at, colour, range, shown, widened } from "./charts.js";
import { element } from "./editor.js";
import { LETTERS } from "./results.js";

const MOST_COLOURS = 10;  // experiments that are told apart by colour
const STEPS = 4;  // in which a picture gets higher for the curves of the sliders, so that it does not change all the time

export class Pictures {
  constructor($) { Object.assign(this, { $, charts: new Map(), signature: "", group: new Group(), phase: null, of: [], made: null }); }

  /** What stands still while sliders move: made anew when something that it is made of is another. */
  still(of, make) {
    if (of.length !== this.of.length || of.some((part, i) => part !== this.of[i])) Object.assign(this, { of, made: make() });
    return this.made;
  }

  /** now: columns (names, hidden), experiments, curves of the sliders, fits; what page and axes are called. */
  draw(now) {
    const { $ } = this, { names, hidden, experiments: every, page, curves, u, fits, comparing, revision, table, timeName, columnName } = now;
    const key = JSON.stringify([names, names.map(hidden), timeName, names.map(columnName), revision]);
    if (key !== this.signature) {
      for (const chart of this.charts.values()) chart.remove();
      const height = names.length > 4 ? 200 : 250;
      this.group = new Group();
      this.charts = new Map(names.map((name) => [name, new Chart($("charts"), { title: name, note: hidden(name) ? "hidden" : "", height, x: timeName, y: columnName(name), group: this.group })]));
      this.signature = key;
    }
    const several = every.length > 1, many = every.length > MOST_COLOURS && !page.experiment;
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    $("slider-key").hidden = comparing;
    const chosen = every.map((e, i) => ({ ...e, i })).filter((e) => !page.experiment || e.name === page.experiment);
    const tint = (c, i) => colour(several && !many ? i : c);
    const { measured, columns } = this.still([u, table, page.experiment, comparing, ink, ...names, ...fits.map(({ fit }) => fit)], () => {
      const times = range(chosen.flatMap((e) => Object.values(e.columns).map((d) => d.t)), 0);
      return {
        measured: chosen.some((e) => Object.values(e.columns).some((d) => d.t.length)) ? times : null,
        columns: names.map((name, c) => column(name, (i) => tint(c, i), { chosen, fits, many, paint: comparing ? ink : null })),
      };
    });
    names.forEach((name, c) => {
      const { points, lines, bands, solid, span, positive, count } = columns[c];
      const followed = [];
      for (const curve of comparing ? [] : curves) {
        const e = u?.experiments[curve.course], m = u?.columns.indexOf(name) ?? -1;
        if (!e || m < 0 || !curve.y[m] || !chosen.some((own) => own.name === e.name)) continue;
        const own = chosen.length > 1 && !many ? tint(c, curve.course) : ink;
        followed.push({ t: curve.t, y: curve.y[m], colour: own, dash: many ? [] : [6, 4], width: many ? 0.8 : chosen.length > 4 ? 1.1 : 1.8, alpha: many ? 0.35 : 1 });
      }
      // Curves of sliders may go far, and those that settle begin long before: they widen the picture, but do not flatten the data.
      const empty = !points.length && !lines.length;
      const wide = range(followed.map((l) => l.y), 0.08);
      const y = empty ? wide : followed.length ? widened(solid, wide, 0.5, STEPS) : solid;
      const all = range([span, ...followed.map((l) => l.t)], 0);
      const x = range([measured ? widened(measured, all, 1) : all], 0.025);
      const chart = this.charts.get(name);
      chart.card.hidden = comparing && empty;  // a hidden state of models that do not say it
      chart.read = (time) => [
        `t ${shown(time, 3)}`,
        ...fits.slice(0, 4).map(({ fit, name: own }, i) => {
          const e = fit.experiments[chosen[0]?.name], c = e?.columns[name], value = c ? at(e.t, c.y, time) : null;
          const [low, high] = c ? [at(e.t, c.low, time), at(e.t, c.high, time)] : [null, null];
          const band = low === null || high === null ? "" : ` (${shown(low, 3)} to ${shown(high, 3)})`;
          return value === null ? "" : `${own ? LETTERS[i] : "fit"} ${shown(value, 3)}${band}`;
        }),
        nearestDatum(points, time, x),
        followed[0] ? `sliders ${shown(at(followed[0].t, followed[0].y, time), 3)}` : "",
      ].filter(Boolean).join(" · ");
      chart.describe(`${name}: ${count} observations${fits.length ? ", with the fit" : ""}${followed.length ? ", with the curve of the sliders" : ""}`);
      const logarithmic = page.log && positive[0] > 0 && positive[1] > positive[0];
      chart.set({ points, bands, lines, moving: followed }, x, logarithmic ? [positive[0] / 1.5, positive[1] * 1.5] : y, logarithmic);
    });
    this.drawPhase(now, chosen, several);
    const keys = fits.map(({ name, colour: own }, i) => {
      const box = element("span"), mark = box.appendChild(element("i", own === null ? "key band" : "key"));
      if (own !== null) mark.style.borderTopColor = colour(own);
      box.append(own === null ? "fit with 95 % band" : `${LETTERS[i]} ${name}`);
      return box;
    });
    const subjects = many ? [element("span", "", `${every.length} experiments`)] : several && !comparing && !page.experiment ? every.map(({ name }, i) => {
      const box = element("span"), mark = box.appendChild(element("i", "key dot"));
      mark.style.background = colour(i);
      box.append(name);
      return box;
    }) : [];
    $("fit-keys").replaceChildren(...keys, ...subjects);
  }

  /** The first two states against each other. */
  drawPhase({ page, u, fits, curves, comparing }, chosen, several) {
    const { $ } = this;
    const pair = (u?.states ?? []).filter((s) => u.columns.includes(s)).slice(0, 2);
    $("phase-label").hidden = pair.length < 2;
    if (!page.phase || pair.length < 2) { this.phase?.remove(); this.phase = null; return; }
    const title = `${pair[1]} against ${pair[0]}`;
    if (this.phase?.title !== title || !this.phase.card.isConnected) {
      this.phase?.remove();
      this.phase = new Chart($("charts"), { title, height: 250, x: pair[0], y: pair[1] });
      this.phase.title = title;
    }
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    const lines = [], points = [];
    for (const e of chosen) {
      const [a, b] = pair.map((s) => e.columns[s]), own = colour(several ? e.i : 0);
      if (a && b && a.t.length === b.t.length) points.push({ t: a.y, y: b.y, colour: own });
      for (const { fit, colour: paint } of fits) {
        const c = pair.map((s) => fit.experiments[e.name]?.columns[s]?.y);
        if (c[0] && c[1]) lines.push({ t: c[0], y: c[1], colour: paint === null ? own : colour(paint), path: true });
      }
    }
    for (const curve of comparing ? [] : curves) {
      const e = u.experiments[curve.course], [a, b] = pair.map((s) => curve.y[u.columns.indexOf(s)]);
      if (!e || !a || !b || !chosen.some((own) => own.name === e.name)) continue;
      lines.push({ t: a, y: b, colour: chosen.length > 1 ? colour(curve.course) : ink, dash: [6, 4], width: 1.6, path: true });
    }
    const solid = points.length ? points : lines;
    this.phase.describe(`${title}: the path of the states`);
    this.phase.set({ points, lines }, widened(range(solid.map((p) => p.t), 0.1), range(lines.map((l) => l.t)), 0.5), widened(range(solid.map((p) => p.y), 0.1), range(lines.map((l) => l.y)), 0.5));
  }
}

/** Data and fits of a column, and how far they reach; paint: the one colour of the data, if they have none of their own. */
function column(name, tint, { chosen, fits, many, paint: one }) {
  const points = [], lines = [], bands = [];
  for (const e of chosen) {
    const d = e.columns[name];
    if (d) points.push({ ...d, colour: one ?? tint(e.i), alpha: many ? 0.6 : 0.9 });
    for (const { fit, colour: own } of fits) {
      const found = fit.experiments[e.name], curve = found?.columns[name];
      if (!curve) continue;
      const paint = own === null ? tint(e.i) : colour(own);
      if (fits.length * chosen.length <= 4) bands.push({ t: found.t, low: curve.low, high: curve.high, colour: paint, alpha: fits.length > 1 ? 0.1 : 0.18 });
      lines.push({ t: found.t, y: curve.y, colour: paint, width: many ? 1 : chosen.length > 4 ? 1.4 : 2.2, alpha: many ? 0.45 : 1 });
    }
  }
  return {
    points, lines, bands, count: points.reduce((sum, p) => sum + p.y.length, 0),
    solid: range([...points.map((p) => p.y), ...bands.flatMap((b) => [b.low, b.high]), ...lines.map((l) => l.y)], 0.08),
    span: points.length || lines.length ? range([...points, ...lines].map((l) => l.t), 0) : [],
    positive: range([...points, ...lines].map((p) => p.y.filter((v) => v > 0)), 0),
  };
}

/** The observation next to a time, if there is one within a fiftieth of what is in sight. */
function nearestDatum(points, time, [low, high]) {
  let best = null, off = (high - low) / 50;
  for (const { t, y } of points) t.forEach((own, i) => { if (Math.abs(own - time) < off && y[i] !== null) [best, off] = [y[i], Math.abs(own - time)]; });
  return best === null ? "" : `datum ${shown(best, 3)}`;
}
