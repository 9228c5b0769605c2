// Which runs a reader wants to see; the address holds it, so that it can be sent to somebody. A
// server filters as matches does (internal/report/runs/filter.go).

import type { Entry } from "./model";
import { machine } from "./words";

export const fields = ["text", "suite", "target", "verdict", "label", "machine", "from", "to"];

export type Filter = Record<string, string>;

export function read(query: URLSearchParams): Filter {
  const given = fields.map((name) => [name, query.get(name) ?? ""] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== ""));
}

export function matches(run: Entry, f: Filter): boolean {
  const labels = Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  const of: Record<string, (wanted: string) => boolean> = {
    text: (wanted) => words(run, labels).includes(wanted.toLowerCase()),
    suite: (wanted) => run.suite === wanted,
    target: (wanted) => (run.targets ?? []).some((row) => names(row, wanted)),
    verdict: (wanted) => has(run, wanted),
    label: (wanted) => labels.some((l) => l === wanted || l.startsWith(wanted + "=")),
    machine: (wanted) => run.machine.key === wanted,
    from: (wanted) => run.time.slice(0, 10) >= wanted,
    to: (wanted) => run.time.slice(0, 10) <= wanted,
  };
  return Object.entries(f).every(([name, wanted]) => of[name]?.(wanted) ?? true);
}

// names reports whether a row is of a target, or of a service: its beginning before a slash, a
// space or an at sign.
function names(row: string, wanted: string): boolean {
  return row === wanted || (row.startsWith(wanted) && /^[/ @]/.test(row.slice(wanted.length)));
}

function words(run: Entry, labels: string[]): string {
  const all = [run.id, run.suite, run.question, machine(run), ...(run.targets ?? []), ...labels];
  return all.join("\n").toLowerCase();
}

function has(run: Entry, verdict: string): boolean {
  const t = run.trials;
  switch (verdict) {
    case "valid":
      return t.valid > 0;
    case "suspect":
      return t.suspect > 0;
    case "invalid":
      return t.invalid > 0;
    case "failed":
      return t.failed > 0;
    case "missing":
      return t.missing > 0;
  }
  return true;
}

// offered are the values that there are of what can be chosen, each once, in order.
export function offered(runs: Entry[], of: (run: Entry) => string[]): string[] {
  return [...new Set(runs.flatMap(of))].filter(Boolean).sort();
}
