// Special functions and quantiles, as stats has them of gonum; a test holds comparisons
// that are made of them to the Go program's.

// lgamma is log Γ(x) for x > 0: Stirling's series (Abramowitz & Stegun 6.1.41), from where it is
// exact to the last digits, and downwards by Γ(x+1) = x Γ(x).
export function lgamma(x: number): number {
  let shift = 0;
  let z = x;
  for (let product = 1; ; z++) {
    if (z >= 16) {
      shift += Math.log(product);
      break;
    }
    product *= z;
  }
  const w = 1 / (z * z);
  const terms = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156];
  const series = terms.reduceRight((sum, c) => sum * w + c, 0) / z;
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

const tiny = 1e-300;
const precise = 1e-16;
const mostTerms = 5000;

// fraction is the continued fraction of the incomplete beta function (Lentz's method, as Thompson &
// Barnett, "Coulomb and Bessel functions of complex arguments and order", 1986, have it).
function fraction(a: number, b: number, x: number): number {
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let h = d;
  for (let m = 1; m < mostTerms; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    const step = d * c;
    h *= step;
    if (Math.abs(step - 1) < precise) {
      break;
    }
  }
  return h;
}

function guard(x: number): number {
  return Math.abs(x) < tiny ? tiny : x;
}

// beta is the regularised incomplete beta function; rest is 1 - x, exactly, where x is close to 1.
function beta(a: number, b: number, x: number, rest: number): number {
  if (x <= 0 || rest <= 0) {
    return x <= 0 ? 0 : 1;
  }
  const log = lgamma(a + b) - lgamma(a) - lgamma(b) + a * Math.log(x) + b * Math.log(rest);
  if (x < (a + 1) / (a + b + 2)) {
    return (Math.exp(log) * fraction(a, b, x)) / a;
  }
  return 1 - (Math.exp(log) * fraction(b, a, rest)) / b;
}

// studentTails is the probability that |t| is greater, two-sided.
export function studentTails(t: number, free: number): number {
  const all = free + t * t;
  return beta(free / 2, 0.5, free / all, (t * t) / all);
}

// studentQuantile is where the distribution function is p, at least a half.
export function studentQuantile(p: number, free: number): number {
  const tails = 2 * (1 - p);
  return falling((t) => studentTails(t, free), tails);
}

// falling finds where a function that falls from 0 on has a value, to the last digit.
function falling(f: (x: number) => number, value: number): number {
  let hi = 1;
  while (f(hi) > value) {
    hi *= 2;
  }
  let lo = hi === 1 ? 0 : hi / 2;
  for (;;) {
    const mid = (lo + hi) / 2;
    if (mid <= lo || mid >= hi) {
      return mid;
    }
    if (f(mid) > value) {
      lo = mid;
    } else {
      hi = mid;
    }
  }
}

// gammaTail is the regularised upper incomplete gamma function Q(a, x), or the lower one P, each
// computed where it is the smaller one (Abramowitz & Stegun 6.5.29 and 6.5.31).
function gammaTail(a: number, x: number): { lower: number; upper: number } {
  if (x <= 0) {
    return { lower: 0, upper: 1 };
  }
  const scale = Math.exp(a * Math.log(x) - x - lgamma(a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let k = 1; k < mostTerms && term > sum * precise; k++) {
      term *= x / (a + k);
      sum += term;
    }
    const lower = sum * scale;
    return { lower, upper: 1 - lower };
  }
  let b = x + 1 - a;
  let c = 1 / tiny;
  let d = 1 / b;
  let h = d;
  for (let k = 1; k < mostTerms; k++) {
    const an = -k * (k - a);
    b += 2;
    d = 1 / guard(an * d + b);
    c = guard(b + an / c);
    const step = d * c;
    h *= step;
    if (Math.abs(step - 1) < precise) {
      break;
    }
  }
  const upper = h * scale;
  return { lower: 1 - upper, upper };
}

// chiSquaredQuantile is where its distribution function is p.
export function chiSquaredQuantile(free: number, p: number): number {
  const a = free / 2;
  const falls =
    p < 0.5
      ? falling((x) => 1 / gammaTail(a, x).lower, 1 / p)
      : falling((x) => gammaTail(a, x).upper, 1 - p);
  return 2 * falls;
}

// normal is the standard normal distribution function: erfc is an incomplete gamma function.
export function normal(x: number): number {
  const { lower, upper } = gammaTail(0.5, (x * x) / 2);
  return x > 0 ? 0.5 + lower / 2 : upper / 2;
}

// legendre are the nodes and weights of Gauss and Legendre on (0, 1): the roots of the polynomial
// by Newton's method from Tricomi's approximation.
export function legendre(n: number): { nodes: number[]; weights: number[] } {
  const nodes: number[] = [];
  const weights: number[] = [];
  for (let k = n; k >= 1; k--) {
    let x = Math.cos((Math.PI * (k - 0.25)) / (n + 0.5));
    let slope = 0;
    for (let pass = 0; pass < 100; pass++) {
      let [before, now] = [1, x];
      for (let j = 2; j <= n; j++) {
        [before, now] = [now, ((2 * j - 1) * x * now - (j - 1) * before) / j];
      }
      slope = (n * (x * now - before)) / (x * x - 1);
      const step = now / slope;
      x -= step;
      if (Math.abs(step) < 1e-16) {
        break;
      }
    }
    nodes.push((1 + x) / 2);
    weights.push(1 / ((1 - x * x) * slope * slope));
  }
  return { nodes, weights };
}
