// Undo and redo of everything that changes a model: its text, and the values of its sliders.

const MERGED = 1000;  // milliseconds in which changes of one kind are one step
const MOST = 100;  // steps

export class History {
  /** button, again: for undo and redo; restore(model): shows a model that was put back. */
  constructor(button, again, restore) {
    Object.assign(this, { button, again, restore, of: new WeakMap(), last: { what: "", at: 0 } });
    button.addEventListener("click", () => this.step("past", "future"));
    again.addEventListener("click", () => this.step("future", "past"));
    addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("textarea, input:not([type=range])");
      if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      if (event.shiftKey) this.step("future", "past"); else this.step("past", "future");
    });
  }

  show(model) {
    this.model = model;
    const { past, future } = this.steps();
    this.button.disabled = !past.length;
    this.again.disabled = !future.length;
    this.button.title = past.length ? `Undo: ${past.at(-1).what}` : "Nothing to undo";
  }

  steps() {
    if (!this.of.has(this.model)) this.of.set(this.model, { past: [], future: [] });
    return this.of.get(this.model);
  }

  /** Before a model changes: what it is now. */
  remember(model, what) {
    const now = performance.now(), merged = this.model === model && this.last.what === what && now - this.last.at < MERGED;
    this.model = model;
    this.last = { what, at: now };
    if (merged) return;
    const { past, future } = this.steps();
    past.push(state(model, what));
    if (past.length > MOST) past.shift();
    future.length = 0;
    this.show(model);
  }

  step(from, to) {
    const steps = this.model && this.steps(), found = steps?.[from].pop();
    if (!found) return;
    steps[to].push(state(this.model, found.what));
    this.last = { what: "", at: 0 };
    Object.assign(this.model, { text: found.text, values: { ...found.values }, moved: found.moved });
    this.show(this.model);
    this.restore(this.model);
  }
}

const state = ({ text, values, moved }, what) => ({ text, values: { ...values }, moved, what });
