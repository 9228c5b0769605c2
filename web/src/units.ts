// Axis labels and readings: the same three digits as in the table (internal/table/format.go).

function digits(x: number): string {
  const a = Math.abs(x);
  if (a === 0 || a >= 99.95) {
    return x.toFixed(0);
  }
  return x.toFixed(a >= 9.995 ? 1 : a >= 0.1 ? 2 : 3);
}

export function rate(perS: number): string {
  if (perS >= 999_500) {
    return digits(perS / 1e6) + "M";
  }
  return perS >= 999.5 ? digits(perS / 1e3) + "k" : digits(perS);
}

export function milliseconds(ms: number): string {
  return digits(ms) + " ms";
}

// plain is a number of an axis whose label says the unit.
export function plain(x: number): string {
  return x >= 1000 ? tick(rate(x)) : String(Number(x.toPrecision(3)));
}

// tick drops what an axis does not need: 20.0k is 20k there.
export function tick(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

// nines writes a quantile as a percentile: 0.999 is 99.9.
export function percentile(q: number): string {
  return String(Number((q * 100).toFixed(4)));
}
