// A plain text area over its own coloured copy, with numbers of lines and errors marked at their place.

const WORDS = /^(input|step|fixed|start|log|linear|local|shared|at|before|when|normal|lognormal|uniform|near|student|laplace|loglaplace|poisson|negbinomial|binomial)$/;
const FUNCTIONS = /^(exp|log|ln|log10|sqrt|abs|sign|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|min|max|pow|hill|where|piecewise|pi|t)$/;
const TOKEN = /(#.*)|(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|(\s+|[^\s])/gu;

export class Editor {
  constructor(parent, changed) {
    parent.innerHTML = "";
    this.gutter = parent.appendChild(element("div", "gutter"));
    this.gutter.setAttribute("aria-hidden", "true");
    const area = parent.appendChild(element("div", "area"));
    this.copy = area.appendChild(element("pre"));
    this.copy.setAttribute("aria-hidden", "true");
    this.box = area.appendChild(element("textarea"));
    Object.assign(this.box, { spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off" });
    this.box.setAttribute("aria-label", "Equations");
    this.box.setAttribute("aria-describedby", "model-error");
    this.error = null;
    this.states = new Set();
    this.box.addEventListener("input", () => { this.draw(); changed(this.box.value); });
    this.box.addEventListener("scroll", () => this.scroll());
    this.box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.scroll()).observe(area);
  }

  get text() { return this.box.value; }

  set text(text) {
    if (text !== this.box.value) this.box.value = text;
    this.draw();
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      document.getElementById("fit").click();
    }
  }

  mark(error, states = this.states) {
    this.error = error;
    this.states = new Set(states);
    this.box.setAttribute("aria-invalid", String(Boolean(error)));
    this.draw();
  }

  /** Put the cursor where the error is. */
  select() {
    if (!this.error?.line) return;
    const lines = this.box.value.split("\n");
    const start = lines.slice(0, this.error.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    this.box.focus();
    this.box.setSelectionRange(start + this.error.start, start + this.error.end);
  }

  draw() {
    const lines = this.box.value.split("\n");
    this.copy.replaceChildren(...lines.flatMap((line, i) => [...this.line(line, i + 1), "\n"]));
    this.gutter.replaceChildren(...lines.flatMap((_, i) => [
      element("span", this.error?.line === i + 1 ? "bad" : "", String(i + 1)), "\n",
    ]));
    this.scroll();
  }

  line(text, number) {
    const bad = this.error?.line === number ? this.error : null;
    const pieces = [];
    let at = 0;
    for (const [token, comment, numeral, name] of text.matchAll(TOKEN)) {
      let kind = comment ? "comment" : numeral ? "number" : "";
      if (name) kind = WORDS.test(name) || FUNCTIONS.test(name) ? "word" : this.states.has(name) ? "state" : "";
      const from = at, to = at + token.length;
      // A token may be marked in part only.
      const cuts = bad ? [from, Math.min(Math.max(bad.start, from), to), Math.min(Math.max(bad.end, from), to), to] : [from, to];
      for (let i = 0; i + 1 < cuts.length; i++) {
        if (cuts[i] === cuts[i + 1]) continue;
        const marked = bad && cuts[i] >= bad.start && cuts[i + 1] <= bad.end;
        pieces.push(element("span", [kind, marked ? "wrong" : ""].join(" ").trim(), text.slice(cuts[i], cuts[i + 1])));
      }
      at = to;
    }
    if (bad && bad.start >= text.length) pieces.push(element("span", "wrong", " "));
    return pieces;
  }

  scroll() {
    this.copy.scrollTop = this.box.scrollTop;
    this.copy.scrollLeft = this.box.scrollLeft;
    this.gutter.style.height = `${this.box.clientHeight}px`;
    this.gutter.scrollTop = this.box.scrollTop;
  }
}

export function element(tag, kind = "", text = "") {
  const found = document.createElement(tag);
  if (kind) found.className = kind;
  if (text) found.textContent = text;
  return found;
}

/** A formula from its tree: the name of a MathML element, then its children. */
export function formula([name, ...children]) {
  const found = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  if (name === "mstyle") found.setAttribute("displaystyle", "true");
  found.append(...children.map((child) => (Array.isArray(child) ? formula(child) : child)));
  return found;
}

/** Draws the children of an element anew, given a function that makes them: not over what somebody types or drags
 * there, and who is somewhere in the old ones finds the same place in the new. */
export function patient(parent) {
  let typing = null, waiting = null;
  const draw = (make) => {
    waiting = typing?.isConnected ? make : null;
    if (waiting) return;
    const focus = document.activeElement?.dataset?.focus;
    parent.replaceChildren(...make());
    if (focus) parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  };
  const ended = () => {
    typing = null;
    if (waiting) draw(waiting);
  };
  parent.addEventListener("pointerdown", ({ target }) => { if (target.type === "range") typing = target; });
  parent.addEventListener("input", ({ target }) => { if (target.type !== "range") typing = target; });
  parent.addEventListener("change", () => { typing = null; }, true);
  parent.addEventListener("focusout", ended);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { if (typing?.type === "range") ended(); });
  draw.clear = () => {
    typing = waiting = null;
    parent.replaceChildren();
  };
  return draw;
}
