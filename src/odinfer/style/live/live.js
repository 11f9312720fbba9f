// Panels that answer the mouse: hover to read values, drag to zoom, double click to see all again.
// Each <figure class="plot"> with data beside its image gets one; without this script, and on paper, the images stay.
(function () {
  "use strict";
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => (/^var\((.*)\)$/.test(name) ? style.getPropertyValue(RegExp.$1).trim() : name);
  const plain = (v, digits = 4) => (v === null || v === undefined ? "" : String(Number(v.toPrecision(digits))));
  const plots = [];

  function table(panel) {
    // Every line has times of its own: joined, with gaps where a line has no value.
    const tables = [], series = [{}], bands = [], reads = [];
    const add = (t, columns) => {
      if (t.length) tables.push([t, ...columns.map((c) => c[0])]);
      if (t.length) columns.forEach((c) => series.push(c[1]));
    };
    const line = (of, width, dash) => ({ stroke: () => colour(of), width, dash, spanGaps: true, pxAlign: 0, points: { show: false } });
    panel.lines.forEach((l) => {
      const first = series.length, none = { stroke: "transparent", spanGaps: true, points: { show: false } };
      const dotted = l.least.some((v) => v !== null);
      add(l.t, [
        [l.fit, line(l.colour, l.wide ? 3 : 2)], [l.high, none], [l.low, none],
        [l.most, dotted ? line(l.colour, 1, [2, 3]) : none], [l.least, dotted ? line(l.colour, 1, [2, 3]) : none],
      ]);
      bands.push({ series: [first + 1, first + 2], fill: () => colour(l.colour) + "2e" });
      const best = series.length;
      add(l.best_at, [[l.best, line(l.best_colour, 2, panel.beside ? [2, 3] : [7, 4])]]);
      const seen = series.length;
      const dots = { show: true, size: 7, fill: () => colour(l.dots || l.colour), stroke: () => colour("var(--plot-back)"), width: 1 };
      const hollow = { ...dots, fill: dots.stroke, stroke: dots.fill };  // what is known as a limit only
      const mark = (points) => ({ stroke: () => colour(l.colour), paths: () => null, points });
      add(l.seen, [[l.data, mark(dots)], [l.limits, mark(hollow)]]);
      reads.push({ name: l.name, fit: first, best: l.best_at.length ? best : 0, data: l.seen.length ? seen : 0 });
    });
    return { data: uPlot.join(tables), series, bands, reads };
  }

  function nearest(values, i) {
    // The value at an index, or the closest one that there is.
    for (let d = 0; d < values.length; d++) {
      for (const j of [i - d, i + d]) if (values[j] !== null && values[j] !== undefined) return values[j];
    }
    return null;
  }

  function build(figure) {
    const image = figure.querySelector("img");
    const panel = JSON.parse(figure.querySelector("script").textContent);
    const place = document.createElement("div"), said = document.createElement("p");
    const { data, series, bands, reads } = table(panel);
    if (!data || data[0].length < 2) return;
    place.className = "canvas";
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", image.alt);
    said.className = "read";
    image.after(place, said);
    const axis = { stroke: () => colour("var(--plot-faint)"), grid: { stroke: () => colour("var(--plot-grid)"), width: 1 },
                   ticks: { stroke: () => colour("var(--plot-line)"), width: 1, size: 4 }, font: "12px system-ui, sans-serif",
                   labelFont: "13px system-ui, sans-serif", labelSize: 20 };
    const height = () => Math.max(170, Math.min(260, Math.round(place.clientWidth * 0.5)));
    const values = (u, splits) => splits.map((v) => (v === null ? "" : plain(v, 8).replace("-", "\u2212")));
    const size = (u, words) => 14 + 7 * Math.max(6, ...(words || []).map((word) => word.length));
    const plot = new uPlot({
      width: place.clientWidth, height: height(), series, bands, legend: { show: false }, pxAlign: 0,
      scales: { x: { time: false }, y: { distr: panel.log ? 3 : 1, range: panel.range ? () => panel.range : undefined } },
      axes: [{ ...axis, label: panel.x || "time", size: 34, values }, { ...axis, label: panel.y, size, values }],
      cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
      hooks: { setCursor: [(u) => {
        const i = u.cursor.idx;
        if (i === null || i === undefined || u.cursor.left < 0) { said.textContent = ""; return; }
        said.textContent = [(panel.x || "time") + " " + plain(u.data[0][i])].concat(reads.map((r) => {
          const fit = nearest(u.data[r.fit], i), low = nearest(u.data[r.fit + 2], i), high = nearest(u.data[r.fit + 1], i);
          const own = [(r.name ? r.name + ": " : "") + "fit " + plain(fit)];
          if (low !== null && high !== null) own[0] += " (" + plain(low) + " to " + plain(high) + ")";
          if (r.best) own.push((panel.beside || "best trajectory") + " " + plain(nearest(u.data[r.best], i)));
          ["data", "limit"].forEach((word, n) => {
            const v = r.data ? u.data[r.data + n][i] : null;
            if (v !== null && v !== undefined) own.push(word + " " + plain(v));
          });
          return own.join(", ");
        })).join(" · ");
      }] },
    }, data, place);
    figure.classList.add("live");
    document.documentElement.classList.add("scripted");
    plots.push(plot);
    new ResizeObserver(() => {
      if (place.clientWidth > 0 && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: height() });
    }).observe(place);
  }

  const folded = () => document.querySelectorAll("details:not([open])");
  addEventListener("beforeprint", () => folded().forEach((d) => { d.open = true; d.dataset.folded = ""; }));
  addEventListener("afterprint", () => document.querySelectorAll("[data-folded]").forEach((d) => {
    d.open = false;
    delete d.dataset.folded;
  }));
  document.querySelectorAll("figure.plot").forEach((figure) => {
    if (figure.querySelector("script")) try { build(figure); } catch (error) { figure.classList.remove("live"); }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((p) => p.redraw()));
})();
