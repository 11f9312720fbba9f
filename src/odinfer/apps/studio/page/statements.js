// What is set by clicking becomes text: bounds, scales, priors, values. The text stays the one source of truth.

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`;

const escaped = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("\\(0\\)", String.raw`\s*\(\s*(?:0|t0)\s*\)`);
const whole = (pattern) => new RegExp(`^${pattern}$`, "u");

/** The text with every statement as `change` has it; null leaves one out, and its line if nothing else is on it. */
function changed(text, change) {
  const kept = [];
  for (const line of text.split("\n")) {
    const at = line.indexOf("#");
    const [code, comment] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at)];
    const before = code.split(";");
    const after = before.map((piece) => {
      const found = change(piece.trim());
      return found === piece.trim() ? piece : found === null ? null : piece.replace(piece.trim(), () => found);
    });
    const rest = after.filter((piece) => piece !== null);
    if (after.every((piece, i) => piece === before[i])) kept.push(line);
    else if (rest.some((piece) => piece.trim()) || comment) kept.push((rest.join(";").trimEnd() + (comment ? `  ${comment}` : "")).trimStart());
  }
  return kept.join("\n");
}

const without = (text, ...patterns) => changed(text, (piece) => (patterns.some((pattern) => pattern.test(piece)) ? null : piece));
const appended = (text, line) => `${text.replace(/\s*$/, "")}\n${line}\n`;

/** How the initial value of a state is spelled in a text. */
export function spelled(text, name) {
  if (!name.endsWith("(0)")) return name;
  const code = text.replace(/#.*/g, "");
  return /\w\s*\(\s*0\s*\)/.test(code) ? name : name.replace("(0)", "(t0)");
}

export function withBounds(text, name, low, high) {
  const n = escaped(name), sign = "\\s*[<>]=?\\s*";
  const rest = without(text, whole(`${NUMBER}${sign}${n}(?:${sign}${NUMBER})?`), whole(`${n}${sign}${NUMBER}`));
  if (low === null && high === null) return rest;
  return appended(rest, `${low === null ? "" : `${low} < `}${spelled(text, name)}${high === null ? "" : ` < ${high}`}`);
}

const valued = (word, name) => whole(`${word}\\s+${escaped(name)}\\s*=.*`);

export function withFixed(text, name, value) {
  const rest = value === null ? without(text, valued("fixed", name)) : without(text, valued("fixed", name), valued("start", name));
  return value === null ? rest : appended(rest, `fixed ${spelled(text, name)} = ${value}`);
}

/** Where the search starts, or anywhere. */
export function withStart(text, name, value) {
  const rest = without(text, valued("start", name));
  return value === null ? rest : appended(rest, `start ${spelled(text, name)} = ${value}`);
}

/** A name in the list of one word only, such as "log" of "log" and "linear", or in none. */
function listed(text, name, words, word) {
  const list = new RegExp(`^(${words.join("|")})\\s+([^=<>~]+)$`, "u"), own = whole(escaped(name));
  const rest = changed(text, (piece) => {
    const found = list.exec(piece);
    if (!found) return piece;
    const names = found[2].split(",").map((n) => n.trim()), left = names.filter((n) => !own.test(n));
    return left.length === names.length ? piece : left.length ? `${found[1]} ${left.join(", ")}` : null;
  });
  if (word === null) return rest;
  let joined = false;
  const made = changed(rest, (piece) => {
    if (joined || list.exec(piece)?.[1] !== word) return piece;
    joined = true;
    return `${piece}, ${spelled(text, name)}`;
  });
  return joined ? made : appended(rest, `${word} ${spelled(text, name)}`);
}

/** scale: "log", "linear", or null for none declared. */
export const withScale = (text, name, scale) => listed(text, name, ["log", "linear"], scale);
export const withLocal = (text, name, local) => listed(text, name, ["local", "shared"], local ? "local" : null);

/** A distribution: of a parameter its prior, of a column its noise; null for none. */
export function withDistribution(text, name, words) {
  const rest = without(text, whole(`${escaped(name)}\\s*~.*`));
  return words === null ? rest : appended(rest, `${spelled(text, name)} ~ ${words}`);
}

/** Pieces between commas that are in no brackets. */
function parts(text) {
  const found = [""];
  let depth = 0;
  for (const character of text) {
    depth += "([".includes(character) ? 1 : ")]".includes(character) ? -1 : 0;
    if (character === "," && !depth) found.push(""); else found[found.length - 1] += character;
  }
  return found.map((piece) => piece.trim());
}

/** The distribution that a text gives to a name, with what is given of the arguments of its family; or null. */
export function distribution(text, name, families) {
  let said = null;
  changed(text, (piece) => {
    said ??= whole(`${escaped(name)}\\s*~\\s*(\\w+)\\s*\\((.*)\\)`).exec(piece);
    return piece;
  });
  if (!said) return null;
  const [, family, inside] = said, titles = families[family]?.arguments ?? [], given = [];
  parts(inside).forEach((piece, i) => {
    const [, word, value] = /^(\w+)\s*=(?!=)\s*(.*)$/s.exec(piece) ?? [null, null, piece];
    given[word === null ? i : titles.indexOf(word)] = value;
  });
  return { family, given };
}

/** The words of a distribution; arguments that are left out are empty. */
export function distributionWords(family, given, titles) {
  const gap = given.findIndex((value) => !value);
  const words = given.map((value, i) => (gap >= 0 && i > gap ? `${titles[i]}=${value}` : value));
  return `${family}(${words.filter((_, i) => given[i]).join(", ")})`;
}

/** A model to begin with, for columns that have none: every one grows or shrinks in proportion to itself. */
export function firstModel(columns) {
  const names = columns.map(asName);
  const rates = names.map((name) => (names.length > 1 ? `rate_${name}` : "rate"));
  const lines = names.map((name, i) => `${name}' = ${rates[i]}*${name}`);
  const either = `real ${rates.join(", ")}  # growth or decay`;
  return ["# How fast does each column change? A first guess: in proportion to itself.", ...lines, either, ""].join("\n");
}

/** A name of the language from the header of a column. */
export function asName(column) {
  const bare = column.replace(/\s*[[(].*$/, "").normalize("NFKC").replace(/[^\p{L}\p{N}_]+/gu, "_").replace(/^_+|_+$/g, "");
  return /^[\p{L}]/u.test(bare) && !/^(t|dt|pi|input|fixed|start|log|linear|and|or|not)$/.test(bare) ? bare : `x_${bare}`;
}
