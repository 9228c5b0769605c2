// Values in words, as the tables of prony print them.

import * as units from "../src/units";
import type { Entry, Series } from "./model";

export const absent = "–";

// amount is a value of any metric, in the unit that its documents name.
export function amount(x: number | null, unit: string): string {
  if (x === null || Number.isNaN(x)) {
    return absent;
  }
  switch (unit) {
    case "1/s":
      return units.rate(x) + "/s";
    case "ns":
      return units.amount(x, "nanoseconds");
    case "B":
      return units.amount(x, "bytes");
    case "1":
      return units.percent(x);
  }
  return units.plain(x) + (unit && " " + unit);
}

// tick is a value of an axis, without the zeros that an axis does not need.
export function tick(x: number, unit: string): string {
  return x === 0 ? "0" : units.tick(amount(x, unit));
}

// change is a ratio as a relative difference with its sign: 1.05 is "+5.00 %".
export function change(ratio: number | null): string {
  if (ratio === null || !Number.isFinite(ratio)) {
    return absent;
  }
  const by = ratio - 1;
  if (by === 0) {
    return "0 %";
  }
  if (by >= 9) {
    return "×" + units.plain(ratio);
  }
  return (by < 0 ? "−" : "+") + units.percent(Math.abs(by));
}

// moment is a time as its document has it, in UTC, to the minute.
export function moment(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime())
    ? time
    : at.toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

// lasting is a number of seconds: "4 min 10 s".
export function lasting(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) {
    return `${s} s`;
  }
  if (s < 3600) {
    return `${Math.floor(s / 60)} min ${s % 60} s`;
  }
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

// outcome is how a trial ended. SUSPECT is a verdict on numbers; a trial has findings.
export function outcome(grade: string): { grade: string; text: string } {
  return grade === "SUSPECT" ? { grade: "none", text: "findings" } : { grade, text: grade };
}

export function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

// repeats is the number of starts or blocks of a run; empty: no record says which.
export function repeats(run: Entry): string {
  return run.repeat ? count(run.blocks, run.repeat) : "";
}

export function machine({ machine: m }: Pick<Entry, "machine">): string {
  const { cpuModel, cores, kernel } = m;
  return [cpuModel, cores > 0 ? count(cores, "core") : "", kernel].filter(Boolean).join(", ");
}

// verdicts are those of a run's numbers, as its report has them, and of trials that are in none.
export function verdicts(run: Entry): { grade: string; text: string }[] {
  const { numbers, trials, damaged = 0 } = run;
  const all: [string, number, string][] = [
    ["valid", numbers.valid, count(numbers.valid, "number") + " VALID"],
    ["suspect", numbers.suspect, `${numbers.suspect} SUSPECT`],
    ["none", numbers.unknown, `${numbers.unknown} not known`],
    ["invalid", trials.invalid, count(trials.invalid, "trial") + " INVALID"],
    ["failed", trials.failed, `${trials.failed} failed`],
    ["missing", trials.missing, `${trials.missing} missing`],
    ["failed", damaged, count(damaged, "damaged line")],
  ];
  return all.filter(([, n]) => n > 0).map(([grade, , text]) => ({ grade, text }));
}

// metrics are those whose name in documents is not the one in tables.
const metrics: Record<string, string> = {
  throughput: "throughput",
  achieved: "answered in time",
  capacity: "capacity",
  cpu_per_request: "CPU per request",
  rss_max: "memory (RSS)",
};

export function metric(load: string, name: string): string {
  return [load, metrics[name] ?? name.replace(/_/g, " ")].filter(Boolean).join(" ");
}

// series is the name of a history: percentiles with and without the machine's stalls are two.
export function series(s: Series): string {
  return metric(s.load, s.metric) + (s.withoutStalls ? " without stalls" : "");
}

// quoted is a command line as a shell takes it.
export function quoted(args: string[]): string {
  return args
    .map((a) => (/^[\w./:=,@%+-]+$/.test(a) ? a : `'${a.replace(/'/g, `'\\''`)}'`))
    .join(" ");
}

// titled names the browser's tab.
export function titled(...names: string[]): void {
  document.title = [...names, "Prony"].filter(Boolean).join(" · ");
}

// title is what a run is called: that of a comparison names its targets, without the control, which
// is the baseline a second time.
export function title(run: Entry): string {
  const targets = run.targets ?? [];
  const compared = targets.filter((t) => !targets.some((x) => t === x + "-again"));
  return run.suite === "versus" && compared.length > 1
    ? compared.join(" · ") + " · versus"
    : run.suite || run.id;
}
