// A chart as SVG: what is drawn on its canvas, with axes, for papers and slides.

export const SVG = "image/svg+xml";
const LEFT = 64, TOP = 28, RIGHT = 16, BOTTOM = 44, WIDTH = 560, HEIGHT = 320;
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const round = (v) => Math.round(v * 100) / 100;

/** At most about so many round numbers between two ends. */
export function ticks(low, high, most = 6) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n * most >= span * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

export function picture(chart, title) {
  const [x0, x1] = chart.span, [y0, y1] = chart.y, { log } = chart;
  const w = WIDTH - LEFT - RIGHT, h = HEIGHT - TOP - BOTTOM;
  const scale = log ? Math.log : (v) => v;
  const X = (v) => round(LEFT + (w * (v - x0)) / (x1 - x0)), Y = (v) => round(TOP + h * (1 - (scale(v) - scale(y0)) / (scale(y1) - scale(y0))));
  const parts = [];
  const seen = (t, y) => y !== null && Number.isFinite(X(t)) && Number.isFinite(Y(y));
  const path = (t, y) => {
    let d = "", pen = false;
    t.forEach((time, i) => { const ok = seen(time, y[i]); if (ok) d += `${pen ? "L" : "M"}${X(time)} ${Y(y[i])}`; pen = ok; });
    return d;
  };
  for (const { t, low, high, colour, alpha = 0.18 } of chart.layers.bands) {
    const at = [...t.keys()].filter((i) => seen(t[i], low[i]) && seen(t[i], high[i]));
    const back = [...at].reverse();
    if (at.length) parts.push(`<path d="M${[...at.map((i) => `${X(t[i])} ${Y(high[i])}`), ...back.map((i) => `${X(t[i])} ${Y(low[i])}`)].join("L")}z" fill="${colour}" opacity="${alpha}"/>`);
  }
  for (const { t, y, colour, dash = [], width = 2 } of [...chart.layers.lines, ...chart.layers.moving]) parts.push(`<path d="${path(t, y)}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash.join(" ")}"/>`);
  for (const { t, y, colour } of chart.layers.points) t.forEach((time, i) => { if (seen(time, y[i])) parts.push(`<circle cx="${X(time)}" cy="${Y(y[i])}" r="3" fill="${colour}"/>`); });
  const words = (x, y, text, more = "") => `<text x="${x}" y="${y}" ${more}>${escaped(text)}</text>`;
  const powers = log ? ticks(Math.log10(y0), Math.log10(y1)).filter(Number.isInteger).map((p) => 10 ** p) : ticks(y0, y1);
  const across = ticks(x0, x1).map((v) => words(X(v), TOP + h + 18, v, 'text-anchor="middle"'));
  const up = powers.map((v) => words(LEFT - 8, Y(v) + 4, v, 'text-anchor="end"'));
  const frame = `<path d="M${LEFT} ${TOP}v${h}h${w}" fill="none" stroke="#888"/>`;
  const names = [words(LEFT, 18, title, 'font-weight="600"'), words(LEFT + w / 2, HEIGHT - 8, chart.labels[0] || "time", 'text-anchor="middle"')];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`
    + `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/><clipPath id="in"><rect x="${LEFT}" y="${TOP}" width="${w}" height="${h}"/></clipPath>`
    + `<g clip-path="url(#in)">${parts.join("")}</g>${frame}${across.join("")}${up.join("")}${names.join("")}</svg>`;
}

/** Put an SVG on the clipboard: as a picture where the browser can, and as text; whether it was allowed. */
export async function copy(text) {
  const kinds = ["text/plain", SVG].filter((kind) => globalThis.ClipboardItem?.supports?.(kind));
  const content = Object.fromEntries(kinds.map((kind) => [kind, new Blob([text], { type: kind })]));
  try {
    if (kinds.length) await navigator.clipboard.write([new ClipboardItem(content)]); else await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The data of an example as a small picture: a colour per column, or per experiment where there is one column. */
export function thumbnail(experiments, colour) {
  const space = "http://www.w3.org/2000/svg", w = 220, h = 64;
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  const series = experiments.flatMap(({ columns }, e) => Object.values(columns).slice(0, 3).map((d, c) => ({ ...d, e, c })));
  const times = series.flatMap((d) => d.t), [t0, t1] = [Math.min(...times), Math.max(...times)];
  const several = experiments.length > 1;
  for (const { t, y, e, c } of series) {
    const all = several ? series.filter((d) => d.c === c).flatMap((d) => d.y) : y, [low, high] = [Math.min(...all), Math.max(...all)];
    const path = svg.appendChild(document.createElementNS(space, "path"));
    const X = (v) => (4 + ((w - 8) * (v - t0)) / (t1 - t0 || 1)).toFixed(1), Y = (v) => (h - 5 - ((h - 10) * (v - low)) / (high - low || 1)).toFixed(1);
    path.setAttribute("d", t.map((v, i) => `M${X(v)} ${Y(y[i])}h0`).join(""));
    path.setAttribute("stroke", colour(several ? e : c));
  }
  return svg;
}
