// The jobs that the page has asked for: one bar for their progress, which ticks, and their answers as they come.
import * as api from "./api.js";

const WORKING = ["waiting", "running", "writing"];

export class Jobs {
  /** box has a progress bar, words and the button that cancels; on: answered(job), changed(job), failed(words, job). */
  constructor(box, on) {
    Object.assign(this, { box, on, all: new Map(), active: new Map() });
    [this.bar, this.words] = [box.querySelector("progress"), box.querySelector("[role=status]")];
    setInterval(() => { if (this.active.size) this.draw(); }, 500);
  }

  get(id) { return this.all.get(id); }

  adopt(job) {
    this.all.set(job.id, { ...this.all.get(job.id), ...job });
    return this.get(job.id);
  }

  /** Whether the same has been asked for and has no answer yet. */
  asked(kind, made) {
    return [...this.active.keys()].some((id) => { const job = this.get(id); return !job.answer && job.kind === kind && job.made === made; });
  }

  async watch(job) {
    if (this.active.has(job.id)) return;
    this.active.set(job.id, performance.now());
    this.draw();
    let answered = Boolean(this.get(job.id)?.answer);
    try {
      for await (const message of api.follow(job.id)) {
        const now = this.adopt(message);
        if (now.answer && !answered) { answered = true; this.on.answered(now); }
        if (now.state === "failed") this.on.failed(now.error, now);
        this.draw();
      }
    } catch (error) {
      this.adopt({ id: job.id, state: "lost" });
      this.on.failed(error, job);
    }
    this.active.delete(job.id);
    this.draw();
    this.on.changed(this.get(job.id));
  }

  /** The job whose progress is shown: the first that has no answer yet. */
  get shown() {
    return [...this.active.keys()].map((id) => this.get(id)).find((job) => !job.answer && WORKING.includes(job.state));
  }

  draw() {
    const job = this.shown;
    this.box.hidden = !job;
    if (!job) return;
    const seconds = Math.floor((performance.now() - this.active.get(job.id)) / 1000);
    const others = [...this.active.keys()].filter((id) => id !== job.id && !this.get(id).answer).length;
    this.bar.value = job.share ?? 0;
    this.words.textContent = [job.progress ?? "starting", `${seconds} s`, others ? `${others} more waiting` : ""].filter(Boolean).join(" · ");
  }

  async cancel() {
    const job = this.shown;
    if (job) this.adopt(await api.cancel(job.id));
    this.draw();
  }
}
