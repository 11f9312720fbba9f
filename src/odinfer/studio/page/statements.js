// What is set by clicking becomes text: bounds, fixed values. The text stays the one source of truth.

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`;

const escaped = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("\\(0\\)", String.raw`\s*\(\s*(?:0|t0)\s*\)`);

/** The text without statements that match, other statements of their lines kept. */
function without(text, matches) {
  const kept = [];
  for (const line of text.split("\n")) {
    const at = line.indexOf("#");
    const [code, comment] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at)];
    const pieces = code.split(";");
    const rest = pieces.filter((piece) => !matches(piece.trim()));
    if (rest.length === pieces.length) kept.push(line);
    else if (rest.some((piece) => piece.trim()) || comment) kept.push((rest.join(";").trimEnd() + (comment ? `  ${comment}` : "")).trimStart());
  }
  return kept.join("\n");
}

const appended = (text, line) => `${text.replace(/\s*$/, "")}\n${line}\n`;

/** How the initial value of a state is spelled in a text. */
export function spelled(text, name) {
  if (!name.endsWith("(0)")) return name;
  const code = text.replace(/#.*/g, "");
  return /\w\s*\(\s*0\s*\)/.test(code) ? name : name.replace("(0)", "(t0)");
}

export function withBounds(text, name, low, high) {
  const n = escaped(name), sign = "\\s*[<>]=?\\s*";
  const patterns = [`${NUMBER}${sign}${n}(?:${sign}${NUMBER})?`, `${n}${sign}${NUMBER}`].map((p) => new RegExp(`^${p}$`, "u"));
  const rest = without(text, (piece) => patterns.some((pattern) => pattern.test(piece)));
  if (low === null && high === null) return rest;
  const own = spelled(text, name);
  return appended(rest, `${low === null ? "" : `${low} < `}${own}${high === null ? "" : ` < ${high}`}`);
}

export function withFixed(text, name, value) {
  const pattern = new RegExp(`^fixed\\s+${escaped(name)}\\s*=.*$`, "u");
  const start = new RegExp(`^start\\s+${escaped(name)}\\s*=.*$`, "u");
  const rest = without(text, (piece) => pattern.test(piece) || (value !== null && start.test(piece)));
  return value === null ? rest : appended(rest, `fixed ${spelled(text, name)} = ${value}`);
}

/** A model to begin with, for columns that have none: every one grows or shrinks in proportion to itself. */
export function firstModel(columns) {
  const names = columns.map(asName);
  const lines = names.map((name, i) => `${name}' = ${names.length > 1 ? `rate_${name}` : "rate"}*${name}`);
  return ["# How fast does each column change? A first guess: in proportion to itself.", ...lines, ""].join("\n");
}

/** A name of the language from the header of a column. */
export function asName(column) {
  const bare = column.replace(/\s*[[(].*$/, "").normalize("NFKC").replace(/[^\p{L}\p{N}_]+/gu, "_").replace(/^_+|_+$/g, "");
  return /^[\p{L}]/u.test(bare) && !/^(t|dt|pi|input|fixed|start|log|linear|and|or|not)$/.test(bare) ? bare : `x_${bare}`;
}
