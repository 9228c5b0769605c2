// The data that the report embeds, as internal/report/page.go writes it. All numbers are computed
// there: the page scales, draws and hides, and never summarises.

export interface Page {
  scenarios: Scenario[];
}

export interface Scenario {
  name: string;
  throughput: Throughput[]; // one a load
  latency: Latency[]; // one a load that has curves
  series: TargetSeries[]; // one a target that has trials
}

export interface Throughput {
  load: string;
  title: string;
  rows: ThroughputRow[]; // best first
}

export interface ThroughputRow {
  target: string;
  tier: number; // from 1; 0 when not ranked
  center: number; // requests/s
  lo: number | null; // null: no interval
  hi: number | null;
  text: string; // as the table prints it: "48.2k ±1.9 %"
  range: string; // the interval in words
  trials: Dot[];
}

export interface Dot {
  block: number;
  value: number;
  text: string;
  verdict: string;
}

export interface Latency {
  load: string;
  title: string;
  quantiles: number[]; // ascending, in (0,1): one x for all lines
  lines: Line[];
}

export interface Line {
  target: string;
  ms: (number | null)[]; // null: too few samples there
}

export interface TargetSeries {
  target: string;
  trials: TrialSeries[];
}

export interface TrialSeries {
  trial: string;
  block: number;
  load: string;
  verdict: string;
  seconds: number[]; // the end of each interval, from the window's start
  perS: number[];
  p99Ms: (number | null)[];
  probe: Probe | null;
}

export interface Probe {
  seconds: number[];
  cores: number[];
  mib: number[];
}

// read parses the block of JSON in the page.
export function read(): Page {
  const block = document.getElementById("data");
  return JSON.parse(block?.textContent ?? '{"scenarios":[]}') as Page;
}
