// What sliders there are, where they start, and how far they reach.

/** The keys under which values of a parameter or initial value are kept: one, or one per experiment. */
export function keysOf(row, experiments) {
  return row.local && experiments.length > 1 ? experiments.map((e) => `${row.name}[${e}]`) : [row.name];
}

/** Parameters and free initial values; with what the data show of an experiment, and the value if nothing is known. */
export function rowsOf(u) {
  const several = u.experiments.length > 1;
  const rows = u.parameters.map((p) => ({ ...p, kind: "parameter", signed: false, seen: () => null, otherwise: middle(p) }));
  for (const state of u.free) {
    const seen = (experiment) => (u.experiments.find((e) => e.name === experiment) ?? u.experiments[0])?.first[state] ?? null;
    const signed = u.experiments.some((e) => e.observed[state]?.y.some((v) => v < 0));
    rows.push({ name: `${state}(0)`, kind: "initial", local: several, low: null, high: null, fixed: null, start: null, prior: null, log: false, scale: null, signed, seen, otherwise: 1 });
  }
  return rows;
}

function middle(p) {
  const { low, high } = p;
  if (p.prior && p.prior[0] !== "uniform") return p.prior[1];
  if (low !== null && high !== null) return low > 0 && high / low > 20 ? Math.sqrt(low * high) : (low + high) / 2;
  if (p.log && (low > 0 || high !== null)) return low > 0 ? 3 * low : high / 3;
  if (low !== null) return low >= 1 ? 2 * low : low + 1;
  if (high !== null) return high > 1 ? 1 : high - 1;
  return 1;
}

/** The next of 1, 2, 5, 10 … */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return Number(([1, 2, 5].find((n) => n * power >= value * (1 - 1e-9)) ?? 10) * power).toPrecision(1) * 1;
}

/** The ends of a slider: bounds that are declared, or what shows the value well; `size` is what is large for it. */
export function ends(row, value, kept, size = 0) {
  const far = Math.max(Math.abs(value), size / 4) || 1;
  const inside = kept && value >= kept[0] && value <= kept[1] && (kept[0] > 0 || !row.log);
  let { low, high } = row;
  if (row.log && low === 0) low = null;
  if (low === null) low = inside ? kept[0] : row.log ? 1 / round(100 / far) : value < 0 || row.signed ? -round(3 * far) : 0;
  if (high === null) high = inside ? kept[1] : row.log ? round(100 * far) : round(3 * far);
  return low < high ? [low, high] : [low, low + far];
}

export const position = (row, [low, high], value) =>
  row.log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
export const valueAt = (row, [low, high], share) => (row.log ? low * (high / low) ** share : low + share * (high - low));
