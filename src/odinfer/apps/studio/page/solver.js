// Trajectories of a model: Dormand–Prince with dense output and, where that is stiff, a Rosenbrock method of order two.
// A course (one experiment) says when it starts and ends, what drives it, and where it jumps; see `interactive.py`.

const C = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1];
const A = [
  [],
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const E = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];
const D = [
  -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
  701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
];
const INSIDE = 1e-9; // of an interval: how far from its ends the field is asked for, since it may jump there
const MOST_STEPS = 20000;
const FINER = 16; // points at most between two of the grid
const MOST_STIFF = 20; // steps that look stiff, after which the other method takes over

/** Points of a trajectory: {t, x: per state, y: per column, ended: where it ended too early or null}. */
export function trajectory(module, course, given, p, free, n = 241, rtol = 1e-6) {
  const K = free.length;
  const M = course.shown;
  const u = new Float64Array(course.inputs.length);
  const x = Float64Array.from(free);
  const out = new Float64Array(Math.max(K, 1));
  inputs(course, course.start, u);
  module.initial(course.start, new Float64Array(K), p, u, out);
  given.forEach((k, i) => { x[k] = out[i]; });

  const t = [], xs = Array.from({ length: K }, () => []), ys = Array.from({ length: M }, () => []);
  const row = new Float64Array(M);
  const emit = (time, state, aside) => {
    inputs(course, aside ?? time, u);
    module.columns(time, state, p, u, row);
    t.push(time);
    for (let k = 0; k < K; k++) xs[k].push(state[k]);
    for (let m = 0; m < M; m++) ys[m].push(row[m]);
  };

  // A system that settles begins long before anything is seen: points lie where somebody looks.
  const begin = Math.max(course.start, 2 * (course.seen ?? course.start) - course.end);
  const step = (course.end - begin || 1) / (n - 1);
  const stops = [course.start, ...course.corners.filter((c) => c > course.start && c < course.end), course.end];
  const work = workspace(K);
  let at = 0; // the next point of the grid
  for (let s = 0; s + 1 < stops.length; s++) {
    const [a, b] = [stops[s], stops[s + 1]];
    const before = x.slice();
    for (const jump of course.jumps) if (jump.t === a) apply(module, course, jump, x, p, u);
    if (s === 0 && x.some((v, k) => v !== before[k])) emit(a, before);
    const aside = INSIDE * (b - a);
    const field = (time, state, into) => {
      const now = Math.min(Math.max(time, a + aside), b - aside);
      inputs(course, now, u);
      module.field(now, state, p, u, into);
      for (const f of course.infusions) if (now >= f.begin && now < f.end) into[f.k] += f.rate;
    };
    emit(a, x, a + aside);
    while (at < n && begin + step * at <= a) at++;
    const between = (t0, t1, state) => {
      const times = [];
      for (; at < n && begin + step * at < b && begin + step * at <= t1; at++) times.push(begin + step * at);
      // Where steps are shorter than those of the grid, the curve has bends that the grid would cut off.
      if (t1 - t0 < step && t0 >= begin) times.push(...[(t0 + t1) / 2, t1].filter((time) => time < b && time - t.at(-1) > step / FINER));
      for (const time of times.sort((one, other) => one - other)) emit(time, state((time - t0) / (t1 - t0)));
    };
    const reached = integrate(field, a, b, x, between, rtol, work);
    if (reached < b) return { t, x: xs, y: ys, ended: reached };
    emit(b, x, b - aside);
  }
  return { t, x: xs, y: ys, ended: null };
}

function inputs(course, t, u) {
  for (let i = 0; i < u.length; i++) {
    const { t: times, y, step } = course.inputs[i];
    let low = 0, high = times.length - 1;
    if (t <= times[0]) { u[i] = y[0]; continue; }
    if (t >= times[high]) { u[i] = y[high]; continue; }
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    u[i] = step ? y[low] : y[low] + ((y[high] - y[low]) * (t - times[low])) / (times[high] - times[low]);
  }
}

function apply(module, course, jump, x, p, u) {
  if (jump.program === null) {
    for (let k = 0; k < x.length; k++) x[k] += jump.amounts[k];
    return;
  }
  const out = new Float64Array(jump.states.length);
  inputs(course, jump.t, u);
  module.jumps[jump.program](jump.t, x, p, u, out);
  jump.states.forEach((k, i) => { x[k] = out[i]; });
}

function workspace(K) {
  return { k: Array.from({ length: 7 }, () => new Float64Array(K)), y: new Float64Array(K), z: new Float64Array(K) };
}

/** From a to b, x in place; the time that was reached. */
function integrate(field, a, b, x, between, rtol, work) {
  const K = x.length;
  const { k, y, z } = work;
  let t = a, h = firstStep(field, a, b, x, k[0], rtol), stiff = 0, rejected = false;
  field(t, x, k[0]);
  for (let steps = 0; steps < MOST_STEPS && t < b; steps++) {
    if (t + 1.01 * h >= b) h = b - t;
    for (let i = 1; i < 7; i++) {
      const row = A[i];
      if (i === 6) z.set(y);
      for (let j = 0; j < K; j++) {
        let sum = 0;
        for (let l = 0; l < i; l++) sum += row[l] * k[l][j];
        y[j] = x[j] + h * sum;
      }
      field(t + C[i] * h, y, k[i]);
    }
    let error = 0;
    for (let j = 0; j < K; j++) {
      let e = 0;
      for (let l = 0; l < 7; l++) e += E[l] * k[l][j];
      const scale = 1e-9 + rtol * Math.max(Math.abs(x[j]), Math.abs(y[j]));
      error += ((h * e) / scale) ** 2;
    }
    error = Math.sqrt(error / K);
    if (!(error <= 1)) {
      h *= error < 1e6 ? Math.max(0.2, 0.9 * error ** -0.2) : 0.2;
      rejected = true;
      if (h < 1e-13 * Math.max(Math.abs(t), b - a)) return t;
      continue;
    }
    let slopes = 0, states = 0;
    for (let j = 0; j < K; j++) {
      slopes += (k[6][j] - k[5][j]) ** 2;
      states += (y[j] - z[j]) ** 2;
    }
    stiff = states > 0 && h * Math.sqrt(slopes / states) > 3.25 ? stiff + 1 : Math.max(0, stiff - 0.2);
    const h0 = h;
    between(t, t + h, (s) => {
      for (let j = 0; j < K; j++) {
        const difference = y[j] - x[j], bend = h0 * k[0][j] - difference;
        let last = 0;
        for (let l = 0; l < 7; l++) last += D[l] * k[l][j];
        z[j] = x[j] + s * (difference + (1 - s) * (bend + s * (difference - h0 * k[6][j] - bend + (1 - s) * h0 * last)));
      }
      return z;
    });
    t = h === b - t ? b : t + h;
    x.set(y);
    k[0].set(k[6]);
    h *= Math.min(rejected ? 1 : 5, Math.max(0.2, 0.9 * (error || 1e-10) ** -0.2));
    rejected = false;
    if (stiff > MOST_STIFF && t < b) return rosenbrock(field, t, b, x, between, Math.max(rtol, 1e-5), h);
  }
  return t;
}

function firstStep(field, a, b, x, slope, rtol) {
  field(a, x, slope);
  let size = 0, speed = 0;
  for (let j = 0; j < x.length; j++) {
    const scale = 1e-9 + rtol * Math.abs(x[j]);
    size += (x[j] / scale) ** 2;
    speed += (slope[j] / scale) ** 2;
  }
  const h = speed > 1e-10 && size > 1e-10 ? 0.01 * Math.sqrt(size / speed) : 1e-3 * (b - a);
  return Number.isFinite(h) ? Math.min(Math.max(h, 1e-12 * (b - a)), b - a) : 1e-6 * (b - a);
}

/** The same for stiff systems; Jacobians by differences. */
function rosenbrock(field, a, b, x, between, rtol, h) {
  const K = x.length, d = 1 / (2 + Math.SQRT2), e32 = 6 + Math.SQRT2;
  const [f0, f1, f2, ft, k1, k2, k3, y, w] = Array.from({ length: 9 }, () => new Float64Array(K));
  const J = Array.from({ length: K }, () => new Float64Array(K));
  let t = a;
  field(t, x, f0);
  for (let steps = 0; steps < MOST_STEPS && t < b; steps++) {
    if (t + 1.01 * h >= b) h = b - t;
    for (let j = 0; j < K; j++) {
      y.set(x);
      const step = 1e-7 * Math.max(Math.abs(x[j]), 1e-5);
      y[j] += step;
      field(t, y, w);
      for (let i = 0; i < K; i++) J[i][j] = (w[i] - f0[i]) / step;
    }
    const dt = 1e-7 * (b - a);
    field(t + dt, x, ft);
    for (let i = 0; i < K; i++) ft[i] = (ft[i] - f0[i]) / dt;
    for (let tries = 0; ; tries++) {
      const solve = factored(J, h * d);
      for (let i = 0; i < K; i++) k1[i] = f0[i] + h * d * ft[i];
      solve(k1);
      for (let i = 0; i < K; i++) y[i] = x[i] + 0.5 * h * k1[i];
      field(t + 0.5 * h, y, f1);
      for (let i = 0; i < K; i++) k2[i] = f1[i] - k1[i];
      solve(k2);
      for (let i = 0; i < K; i++) { k2[i] += k1[i]; y[i] = x[i] + h * k2[i]; }
      field(t + h, y, f2);
      for (let i = 0; i < K; i++) k3[i] = f2[i] - e32 * (k2[i] - f1[i]) - 2 * (k1[i] - f0[i]) + h * d * ft[i];
      solve(k3);
      let error = 0;
      for (let i = 0; i < K; i++) {
        const scale = 1e-9 + rtol * Math.max(Math.abs(x[i]), Math.abs(y[i]));
        error += (((h / 6) * (k1[i] - 2 * k2[i] + k3[i])) / scale) ** 2;
      }
      error = Math.sqrt(error / K);
      if (error <= 1) {
        const h0 = h;
        between(t, t + h, (s) => {
          for (let i = 0; i < K; i++) {
            const difference = y[i] - x[i];
            w[i] = x[i] + s * difference
              + s * (1 - s) * ((1 - 2 * s) * -difference + (1 - s) * h0 * f0[i] - s * h0 * f2[i]);
          }
          return w;
        });
        t = h === b - t ? b : t + h;
        x.set(y);
        f0.set(f2);
        h *= Math.min(5, Math.max(0.2, 0.8 * (error || 1e-9) ** (-1 / 3)));
        break;
      }
      h *= error < 1e6 ? Math.max(0.1, 0.8 * error ** (-1 / 3)) : 0.1;
      if (tries > 60 || h < 1e-14 * Math.max(Math.abs(t), b - a)) return t;
    }
  }
  return t;
}

/** Solves (I − c J) v = v in place, by elimination with pivots. */
function factored(J, c) {
  const K = J.length;
  const m = J.map((row, i) => Float64Array.from(row, (v, j) => (i === j ? 1 : 0) - c * v));
  const order = [];
  for (let i = 0; i < K; i++) {
    let best = i;
    for (let r = i + 1; r < K; r++) if (Math.abs(m[r][i]) > Math.abs(m[best][i])) best = r;
    order.push(best);
    [m[i], m[best]] = [m[best], m[i]];
    for (let r = i + 1; r < K; r++) {
      const share = (m[r][i] /= m[i][i]);
      if (share) for (let j = i + 1; j < K; j++) m[r][j] -= share * m[i][j];
    }
  }
  return (v) => {
    for (let i = 0; i < K; i++) { const p = order[i]; [v[i], v[p]] = [v[p], v[i]]; }
    for (let i = 0; i < K; i++) for (let j = 0; j < i; j++) v[i] -= m[i][j] * v[j];
    for (let i = K - 1; i >= 0; i--) {
      for (let j = i + 1; j < K; j++) v[i] -= m[i][j] * v[j];
      v[i] /= m[i][i];
    }
  };
}
