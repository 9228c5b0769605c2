// What one run brings to a comparison: comparison.Numbers, as prony site publishes it.

import type { Subject, Value } from "../model";

export interface Numbers {
  version: number;
  run: string;
  began: string;
  confidence: number;
  reproduce: string;
  artifacts: Record<string, string>;
  scenarios: Scenario[];
}

export interface Scenario {
  name: string;
  loads: { name: string; model: string }[];
  targets: Target[];
}

export interface Target {
  subject: Subject;
  ran: string;
  service: string;
  reference: string;
  method: Aspect[];
  told: string[];
  shares: { load: string; rateOf: string; rate: number }[];
  metrics: Metric[];
}

export interface Aspect {
  name: string;
  value: string;
  binding: boolean;
}

export interface Metric {
  load: string;
  model: string;
  metric: string;
  unit: string;
  better: string;
  whenUp: string;
  whenDown: string;
  latency: boolean;
  value: Value;
  noise: Noise | null;
  alone: boolean;
}

export interface Noise {
  shared: number;
  sharedFree: number;
  level: number;
  levelFree: number;
  moodFree: number;
}

export function scenario(n: Numbers, name: string): Scenario | undefined {
  return n.scenarios.find((s) => s.name === name);
}

export function target(n: Numbers, inScenario: string, name: string): Target | undefined {
  return scenario(n, inScenario)?.targets.find((t) => t.subject.target === name);
}

// rows are the names of all rows, sorted as Go sorts them: by bytes.
export function rows(n: Numbers): string[] {
  const names = n.scenarios.flatMap((s) => s.targets.map((t) => t.subject.target));
  return [...new Set(names)].sort(byBytes);
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
