// The worker that follows the sliders: it has the model as a module, and the last wish wins.
import { trajectory } from "./solver.js";

const MANY = 10;  // experiments, of whose curves fewer points can be told apart
let loading = Promise.resolve(null);  // the model that was sent last, with its module

self.onmessage = async ({ data }) => {
  if (data.load) {
    loading = import(data.load.url).then((module) => ({ ...data.load, module }), () => null);
    return;
  }
  const model = await loading;
  if (data.key !== model?.key) return self.postMessage({ seq: data.seq, curves: [] });
  const begun = performance.now();
  const points = data.values.length > MANY ? 97 : 241;
  const curves = data.values.map(({ course, p, free }) => {
    const own = model.courses[course];
    try {
      const { t, y, ended } = trajectory(model.module, own, model.given, Float64Array.from(p), Float64Array.from(free), points);
      return { course, t: Float64Array.from(t), y: y.map((v) => Float64Array.from(v)), ended };
    } catch (error) {
      return { course, t: [], y: [], ended: own.start };
    }
  });
  self.postMessage({ seq: data.seq, curves, ms: performance.now() - begun });
};
