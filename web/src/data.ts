// The data that the report embeds, as internal/report/data.go writes it. All numbers are computed
// there: the page scales, draws and hides, and never summarises.

export interface Page {
  targets: string[]; // each has one color on the page, by its place here
  scenarios: Scenario[];
  flames: Flames | null;
}

export interface Scenario {
  name: string;
  latency: Latency[]; // one a load that has curves
  loads: Loads | null;
  cost: Cost | null;
  series: TargetSeries[]; // one a target that has trials
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
  lo: (number | null)[]; // the interval across trials
  hi: (number | null)[];
}

export interface Loads {
  targets: LoadLine[];
}

export interface LoadLine {
  target: string;
  points: LoadPoint[]; // by rate
  peak: number | null; // requests/s of the closed load
  knee: string; // where it gave way, in words; empty: it did not
}

export interface LoadPoint {
  load: string;
  perS: number;
  p50Ms: number | null;
  p99Ms: number | null;
  p99Lo: number | null;
  p99Hi: number | null;
}

export interface Cost {
  title: string;
  points: CostPoint[];
}

export type Range = [lo: number, hi: number];

export interface CostPoint {
  target: string;
  tier: number; // from 1; 0 when not ranked
  perS: number;
  perSRange: Range | null; // intervals; null: unknown
  cpuUs: number | null;
  cpuRange: Range | null;
  rssMiB: number | null;
  rssRange: Range | null;
  text: string;
}

export interface TargetSeries {
  target: string;
  trials: TrialSeries[];
}

export interface TrialSeries {
  trial: string;
  block: number;
  repeat: string; // what block counts: "block" or "start"
  load: string;
  open: boolean; // an open load
  verdict: string;
  seconds: number[]; // the end of each interval, from the window's start
  perS: number[];
  p99Ms: (number | null)[];
  probe: Probe | null;
  warmup: Warmup | null;
}

export interface Probe {
  seconds: number[];
  cores: number[];
  mib: number[];
}

// Warmup lies before the window: its times are negative.
export interface Warmup {
  seconds: number[];
  perS: number[];
  kind: string;
  steady: number | null;
  peak: number | null;
  levels: { from: number; to: number; perS: number }[];
}

// Flames are the profiles of all scenarios. Names are shared: the same functions are everywhere.
export interface Flames {
  names: string[];
  shorts: string[]; // without packages; empty: as the name
  least: number; // the share of a profile below which frames are merged
  against?: boolean; // the first profile is shown as its difference from the second
  profiles: Profile[];
}

export interface Profile {
  scenario: number; // from 0
  target: string;
  kind: string;
  load: string;
  process: string; // of a system
  unit: string;
  about: string; // what took it, of how many samples
  samples: number; // -1: not known
  frames: number[]; // parents first, three numbers each: name, value, how many children follow
}

// read parses the block of JSON in the page.
export function read(): Page {
  const block = document.getElementById("data");
  const page = JSON.parse(block?.textContent ?? "{}") as Partial<Page>;
  const { targets = [], scenarios = [], flames = null } = page;
  return { targets, scenarios, flames };
}
