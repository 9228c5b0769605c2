// The documents that pages are made of, as the server's API and the published files have them.
// Rates are per second, times nanoseconds, sizes bytes; null is a number that there is not.

// Entry is a run in the index (internal/report/runs).
export interface Entry {
  id: string;
  suite: string;
  question: string;
  answer?: string; // how targets differ from the baseline; absent: the run is a ranking
  time: string;
  labels: Record<string, string> | null;
  machine: Machine;
  blocks: number; // or starts
  repeat?: Repeat; // absent: no record says
  trials: Tally;
  numbers: { valid: number; suspect: number; unknown: number };
  targets: string[] | null;
  ranking: Ranked[] | null;
  state: "done" | "running" | "stopped";
  ended?: string; // its last trial did
  damaged?: number; // lines of its records that were left out
}

// Repeat is what a run repeats over all targets: starts, in which they run side by side and are
// loaded in slices, or blocks of whole trials.
export type Repeat = "start" | "block";

export interface Machine {
  cpuModel: string;
  cores: number;
  kernel: string;
  key: string; // runs of two machines are never mixed
}

export interface Tally {
  planned: number;
  valid: number;
  suspect: number;
  invalid: number;
  failed: number;
  missing: number;
}

// Ranked is what put the targets of a scenario in their order.
export interface Ranked {
  scenario: string;
  load: string;
  metric: string;
  unit: string;
  rows: RankedRow[] | null;
}

export interface RankedRow {
  target: string;
  tier: number; // from 1; 0 when not ranked
  center: number | null;
  lo: number | null;
  hi: number | null;
}

// Shelf is the newest part of the runs that a filter matches.
export interface Shelf {
  runs: Entry[];
  total: number; // of the filter
  all: number; // without a filter
  left?: Left[]; // folders of runs that cannot be read
  reading?: Reading;
}

export interface Left {
  id: string;
  why: string;
}

// Reading says that the shelf is incomplete, because runs have yet to be read.
export interface Reading {
  read: number;
  total: number;
}

// Choices are the values by which runs can be filtered.
export interface Choices {
  suites: string[];
  targets: string[];
  labels: string[]; // NAME=VALUE
  machines: Machine[];
}

// Trend is docs/formats/trend-json.md.
export interface Trend {
  runs: number;
  alpha: number;
  notes: string[] | null;
  series: Series[] | null;
}

export interface Series {
  scenario: string;
  target: string;
  configHash: string;
  load: string;
  model: string;
  metric: string;
  unit: string;
  withoutStalls?: boolean; // of the machine
  points: TrendPoint[];
  changes: Change[] | null;
}

export interface TrendPoint {
  run: string;
  commit: string;
  time: string;
  n: number;
  value: number;
  lo: number | null;
  hi: number | null;
}

export interface Change {
  index: number;
  run: string;
  commit: string;
  before: number;
  after: number;
  p: number;
  worse: boolean;
  text: string;
}

// Comparison is what the app shows of docs/formats/compare-json.md. The comparison's page has all.
export interface Comparison {
  title: string;
  mismatches: { aspect: string; a: string; b: string }[] | null; // of the methods
  warnings: string[] | null;
  pairs: Pair[] | null;
}

export interface Pair {
  scenario: string;
  b: { target: string };
  rows: Row[] | null;
}

export interface Row {
  load: string;
  metric: string;
  ratio: { center: number | null; lo: number | null; hi: number | null } | null;
  outcome: "better" | "worse" | "indistinguishable" | "equal" | "none";
  grade?: string; // of a ratio from slices, or of one that the control doubts
  text: string;
}

// Written is a comparison that a site has: of run b with run a (docs/site.md).
export interface Written {
  a: string;
  b: string;
  kind: "previous" | "baseline";
  refused?: string; // why there is no page
}
