// What stats does of two sides' values: ratios with intervals, Holm's correction and what
// so many blocks would have told from none. Methods and sources stand there.

import type { Ratio } from "../model";
import { chiSquaredQuantile, legendre, lgamma, normal, studentQuantile } from "./special";
import { studentTails } from "./special";

// Tested is a ratio with the degrees of freedom behind it.
export interface Tested extends Ratio {
  free: number;
}

// Spread is a variance of log values with the degrees of freedom behind it.
export interface Spread {
  variance: number;
  free: number;
}

function mean(xs: number[]): number {
  return xs.reduce((sum, x) => sum + x, 0) / xs.length;
}

function variance(xs: number[]): number {
  const m = mean(xs);
  let squares = 0;
  let rest = 0;
  for (const x of xs) {
    squares += (x - m) * (x - m);
    rest += x - m;
  }
  return (squares - (rest * rest) / xs.length) / (xs.length - 1);
}

// geometric is the geometric mean; null where a value has no logarithm.
export function geometric(xs: number[]): number | null {
  const m = Math.exp(mean(xs.map(Math.log)));
  return m > 0 && Number.isFinite(m) ? m : null;
}

export function median(xs: number[]): number {
  const sorted = [...xs].sort((a, b) => a - b);
  const mid = Math.floor(sorted.length / 2);
  const at = (k: number) => sorted[k] ?? NaN;
  return sorted.length % 2 === 1 ? at(mid) : at(mid - 1) / 2 + at(mid) / 2;
}

function nothing(n: number): Tested {
  return { n, centre: null, lo: null, hi: null, p: 1, sdLog: null, free: 0 };
}

// unfit finds the first value without a logarithm.
function unfit(xs: number[]): number {
  return xs.findIndex((x) => !(x > 0) || x === Infinity);
}

// shown is a number as Go's %v prints it, of those that have no logarithm.
function shown(x: number): string {
  return x === Infinity ? "+Inf" : String(x);
}

function without(r: Tested, sides: [number[], number[]], what: string): Tested | null {
  for (const [k, xs] of sides.entries()) {
    const i = unfit(xs);
    if (i >= 0) {
      r.warning =
        `${what} ${i + 1}: ${k === 0 ? "a" : "b"} is ${shown(xs[i] ?? NaN)} and has no ` +
        "logarithm: needs positive values";
      return r;
    }
  }
  return null;
}

// paired is stats.PairedRatio.
export function paired(a: number[], b: number[], confidence: number): Tested {
  const r = nothing(a.length);
  if (r.n === 0) {
    r.warning = "no block has both: needs n >= 2";
    return r;
  }
  const lost = without(r, [a, b], "pair");
  if (lost) {
    return lost;
  }
  const ds = b.map((x, i) => Math.log(x) - Math.log(a[i] ?? NaN));
  const first = ds[0] ?? NaN;
  if (r.n === 1) {
    r.centre = Math.exp(first);
    r.warning = "needs n >= 2";
    return r;
  }
  r.assumption = "log-normal";
  if (ds.every((d) => d === first)) {
    r.centre = r.lo = r.hi = Math.exp(first);
    r.sdLog = 0;
    if (first !== 0) {
      r.p = 2 ** (1 - r.n);
    }
    r.warning = "all ratios are equal: a spread below the resolution is unknown";
    return r;
  }
  const v = variance(ds);
  about(r, mean(ds), { variance: v / r.n, free: r.n - 1 }, confidence);
  r.sdLog = Math.sqrt(v);
  return r;
}

// unpaired is stats.UnpairedRatio.
export function unpaired(a: number[], b: number[], confidence: number): Tested {
  const r = nothing(Math.min(a.length, b.length));
  if (r.n === 0) {
    r.warning = "one side has no trial: needs n >= 2 of each";
    return r;
  }
  const lost = without(r, [a, b], "trial");
  if (lost) {
    return lost;
  }
  const as = a.map(Math.log);
  const bs = b.map(Math.log);
  const shift = mean(bs) - mean(as);
  r.centre = Math.exp(shift);
  if (r.n === 1) {
    r.warning = "needs n >= 2 of each";
    return r;
  }
  r.assumption = "log-normal";
  const [a0, b0] = [as[0] ?? NaN, bs[0] ?? NaN];
  if (as.every((x) => x === a0) && bs.every((x) => x === b0)) {
    r.centre = r.lo = r.hi = Math.exp(b0 - a0);
    r.sdLog = 0;
    if (a0 !== b0) {
      r.p = Math.min(1, 2 / orders(as.length + bs.length, as.length));
    }
    r.warning = "all values of a side are equal: a spread below the resolution is unknown";
    return r;
  }
  const va: Spread = { variance: variance(as) / as.length, free: as.length - 1 };
  const vb: Spread = { variance: variance(bs) / bs.length, free: bs.length - 1 };
  r.sdLog = Math.sqrt(variance(as) + variance(bs));
  about(r, shift, { variance: va.variance + vb.variance, free: freedom(va, vb) }, confidence);
  return r;
}

// moderated is a ratio with what its runs say of the noise: variances of single trials of either
// side, of so many trials.
export function moderated(
  r: Tested,
  x: Spread,
  y: Spread,
  trials: [number, number],
  confidence: number,
): Tested {
  r.sdLog = Math.sqrt(x.variance + y.variance);
  const own = { variance: x.variance / trials[0], free: x.free };
  const other = { variance: y.variance / trials[1], free: y.free };
  r.assumption = "moderated";
  const free = Math.min(freedom(own, other), 3 * (r.n - 1));
  const sum = { variance: own.variance + other.variance, free };
  about(r, Math.log(r.centre ?? NaN), sum, confidence);
  return r;
}

// about sets the interval and p of a log ratio whose own variance is known so well.
function about(r: Tested, shift: number, of: Spread, confidence: number): void {
  const se = Math.sqrt(of.variance);
  const half = studentQuantile((1 + confidence) / 2, of.free) * se;
  r.centre = Math.exp(shift);
  r.lo = Math.exp(shift - half);
  r.hi = Math.exp(shift + half);
  r.p = studentTails(Math.abs(shift) / se, of.free);
  r.free = of.free;
}

function freedom(a: Spread, b: Spread): number {
  const sum = a.variance + b.variance;
  return (sum * sum) / (a.variance ** 2 / a.free + b.variance ** 2 / b.free);
}

// orders is in how many ways n of all values can be the least ones.
function orders(all: number, n: number): number {
  return Math.exp(lgamma(all + 1) - lgamma(n + 1) - lgamma(all - n + 1));
}

// holm corrects p values for their number, step by step.
export function holm(ps: number[]): number[] {
  const order = ps.map((_, i) => i).sort((i, j) => (ps[i] ?? 0) - (ps[j] ?? 0) || i - j);
  const out = ps.map(() => 1);
  let before = 0;
  order.forEach((at, i) => {
    before = Math.max(before, Math.min(1, (ps[at] ?? 1) * (ps.length - i)));
    out[at] = before;
  });
  return out;
}

const points = 256;
const grid = legendre(points);

// sees is how many standard deviations of log ratios n blocks tell from none with this power: what
// stats.Ratio.Detects gives for an SD of 1, before it is taken back from logarithms.
export function sees(n: number, free: number, alpha: number, power: number): number {
  const each = Math.max(1, Math.floor(free) / (n - 1));
  const all = each * (n - 1);
  const critical = studentQuantile(1 - alpha / 2, all);
  const edges = grid.nodes.map(
    (u) => critical * Math.sqrt(chiSquaredQuantile(all, u) / all),
  );
  const at = (d: number) => {
    const delta = d * Math.sqrt(n);
    return edges.reduce(
      (sum, edge, i) =>
        sum + (grid.weights[i] ?? 0) * (normal(delta - edge) + normal(-delta - edge)),
      0,
    );
  };
  let [lo, hi] = [0, 1];
  while (at(hi) < power) {
    [lo, hi] = [hi, 2 * hi];
  }
  for (let k = 0; k < 40; k++) {
    const mid = (lo + hi) / 2;
    if (at(mid) < power) {
      lo = mid;
    } else {
      hi = mid;
    }
  }
  return hi;
}
