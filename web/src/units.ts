// Axis labels and readings: three digits, as in the table
// (internal/analysis/table/format.go).

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

// percent is a share, such as 0.123, as "12.3 %".
export function percent(share: number): string {
  return digits(share * 100) + " %";
}

// points is a change of a share, with its sign: 0.043 is "+4.30 points".
export function points(delta: number): string {
  return (delta < 0 ? "−" : "+") + digits(Math.abs(delta) * 100) + " points";
}

const steps: Record<string, [number, string][]> = {
  nanoseconds: [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ],
  bytes: [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ],
};

// amount is a value of a profile, as internal/observe/profile prints it.
export function amount(value: number, unit: string): string {
  for (const [from, name] of steps[unit] ?? []) {
    if (value >= from) {
      return digits(value / from) + " " + name;
    }
  }
  return digits(value);
}
