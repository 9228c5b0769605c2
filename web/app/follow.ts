// A run under way, by the lines of its progress.ndjson, which the server sends as they come.

import type { Repeat } from "./model";
import { path } from "./server";

// Line is docs/formats/record.md, "Following a run".
export interface Line {
  seq: number;
  time: string;
  kind: "begin" | "log" | "step" | "tick" | "ratio" | "trial" | "end" | "gone";
  suite?: string;
  repeat?: Repeat;
  estimateMinNs?: number;
  estimateMaxNs?: number;
  trials?: Planned[];
  text?: string;
  trial?: string;
  step?: string;
  load?: string;
  expectedNs?: number;
  ratePerS?: number;
  p50Ns?: number;
  p99Ns?: number;
  errors?: number;
  round?: number;
  rounds?: number;
  ratio?: Ratio;
  row?: string;
  results?: Result[];
  grade?: string;
  ended?: number;
  total?: number;
  outcome?: string;
}

export interface Planned {
  trial: string;
  row: string;
  scenario: string;
  block: number;
  role?: string;
}

// Ratio compares a target with the baseline by the slices of the starts so far. Its interval is
// valid whenever the run is ended.
export interface Ratio {
  scenario: string;
  target: string;
  baseline: string;
  metric: string;
  starts: number;
  center: number;
  lo: number;
  hi: number;
}

// Result is a number of a trial that has a record.
export interface Result {
  load: string;
  metric: string;
  unit: string;
  value?: number; // absent: the trial has none
  objective?: string; // of a search for a capacity
  met?: boolean; // by some rate
}

// Point is a result with the target's row and its time.
export interface Point extends Result {
  row: string;
  at: number; // seconds since the run began
}

export interface Tick {
  perS: number;
  p50Ns: number;
  p99Ns: number;
  errors: number;
}

// State is what the lines so far say together.
export interface State {
  begun: number; // ms; 0: not known
  now: number; // the time of the last line, by the lab's clock
  estimateMinNs: number;
  estimateMaxNs: number;
  repeat: Repeat;
  planned: Planned[];
  grades: Map<string, string>; // of trials that have a record
  ended: number;
  endedAt: number; // ms: when the last of them ended
  total: number; // 0: nobody knows
  trial: string; // under way
  step: string;
  stepBegun: number;
  expectedNs: number;
  ticks: Tick[]; // of the load under way
  round: number; // that are done, in slices
  rounds: number; // 0: none are under way
  points: Point[]; // of all trials so far
  ratios: Ratio[]; // the newest of each scenario, target and metric
  said: string[];
  outcome: string; // empty: it goes on
  text: string; // how it ended
}

export function begin(): State {
  return {
    begun: 0, now: 0, estimateMinNs: 0, estimateMaxNs: 0, repeat: "block", planned: [],
    grades: new Map(), ended: 0, endedAt: 0, total: 0,
    trial: "", step: "", stepBegun: 0, expectedNs: 0, ticks: [], round: 0, rounds: 0, points: [],
    ratios: [], said: [], outcome: "", text: "",
  };
}

// Bounds of what is kept: a run of a night has a hundred thousand lines.
const keptTicks = 240;
const keptLines = 400;
const keptPoints = 5000;

export function add(s: State, l: Line): void {
  s.now = Date.parse(l.time) || s.now;
  switch (l.kind) {
    case "begin":
      Object.assign(s, begin(), { now: s.now, begun: s.now });
      s.estimateMinNs = l.estimateMinNs ?? 0;
      s.estimateMaxNs = l.estimateMaxNs ?? 0;
      s.repeat = l.repeat ?? "block";
      s.planned = l.trials ?? [];
      s.total = s.planned.length;
      break;
    case "log":
      s.said = [...s.said, l.text ?? ""].slice(-keptLines);
      break;
    case "step":
      s.trial = l.trial ?? "";
      s.step = [l.step, l.load].filter(Boolean).join(" ");
      s.stepBegun = s.now;
      s.expectedNs = l.expectedNs ?? 0;
      s.ticks = [];
      [s.round, s.rounds] = [0, l.rounds ?? 0];
      break;
    case "tick":
      s.trial = l.trial ?? s.trial;
      if (l.rounds) {
        [s.round, s.rounds] = [l.round ?? 0, l.rounds];
        break;
      }
      s.ticks = [...s.ticks, tick(l)].slice(-keptTicks);
      break;
    case "ratio":
      if (l.ratio) {
        s.ratios = [...s.ratios.filter((r) => !alike(r, l.ratio!)), l.ratio];
      }
      break;
    case "trial":
      s.grades.set(l.trial ?? "", l.grade ?? "");
      s.ended = l.ended ?? s.grades.size;
      s.endedAt = s.now;
      s.points = [...s.points, ...points(s, l)].slice(-keptPoints);
      s.total = l.total ?? s.total;
      s.said = [...s.said, l.text ?? ""].slice(-keptLines);
      [s.trial, s.step, s.ticks, s.round, s.rounds] = ["", "", [], 0, 0];
      break;
    case "end":
      s.outcome = l.outcome ?? "done";
      s.text = l.text ?? "";
      break;
    case "gone":
      s.outcome = "gone";
      s.text = "The process of the run ended unexpectedly. Trials that have a record stay.";
      break;
  }
}

function alike(a: Ratio, b: Ratio): boolean {
  return a.scenario === b.scenario && a.target === b.target && a.metric === b.metric;
}

function points(s: State, l: Line): Point[] {
  const at = (s.now - s.begun) / 1e3;
  return (l.results ?? []).map((r) => ({ ...r, row: l.row ?? "", at }));
}

function tick(l: Line): Tick {
  return {
    perS: l.ratePerS ?? 0,
    p50Ns: l.p50Ns ?? 0,
    p99Ns: l.p99Ns ?? 0,
    errors: l.errors ?? 0,
  };
}

// left is how many seconds the run may take yet: by what the trials that ended took, or by its
// plan. While a trial is under way, the time falls.
export function left(s: State): [least: number, most: number] | null {
  if (s.begun === 0 || s.outcome) {
    return null;
  }
  const gone = (s.now - s.begun) / 1e3;
  if (s.ended > 1 && s.total > s.ended && s.endedAt > s.begun) {
    const each = (s.endedAt - s.begun) / 1e3 / s.ended;
    const rest = Math.max(0, each * (s.total - s.ended) - (s.now - s.endedAt) / 1e3);
    return [0.9 * rest, 1.1 * rest];
  }
  const of = (ns: number) => Math.max(0, ns / 1e9 - gone);
  return s.estimateMaxNs > 0 ? [of(s.estimateMinNs), of(s.estimateMaxNs)] : null;
}

const kinds = ["begin", "log", "step", "tick", "ratio", "trial", "end", "gone"] as const;

// How long what has come waits to be shown, ms. To paint takes milliseconds of a processor that a
// measurement may need: while one is under way the page is painted seldom.
const soon = 150;
const seldom = 2500;

// measures says whether a window is open: slices, or a load that is no warm-up, go on.
function measures(s: State): boolean {
  return s.rounds > 0 || (s.ticks.length > 0 && s.step !== "" && s.step !== "warmup");
}

// repeatOf is the number of the start or block under way; 0: between two, or not known.
export function repeatOf(s: State): number {
  return s.planned.find((p) => p.trial === s.trial)?.block ?? 0;
}

// repeatsOf is how many starts or blocks are planned; 0: the run goes on for a time.
export function repeatsOf(s: State): number {
  return Math.max(0, ...s.planned.map((p) => p.block));
}

// retry is when a stream that was refused is requested again, ms.
const retry = 5000;

// follow calls changed at most a few times a second, until the run has ended or nobody listens. The
// browser asks again by itself where the connection breaks, from behind the last line it has. After
// an answer without events it does not: then the run may be over, or too many pages follow runs.
export function follow(
  id: string,
  changed: (s: State, broken: boolean) => void,
  refused: () => void,
): () => void {
  const state = begin();
  let events: EventSource;
  let due = 0;
  let again = 0;
  const show = (broken = false) => {
    clearTimeout(due);
    due = 0;
    changed({ ...state }, broken);
  };
  const take = (kind: Line["kind"], data: string) => {
    const line = parsed(data);
    if (line) {
      add(state, { ...line, kind });
    }
    if (state.outcome) {
      events.close();
      show();
    } else {
      due ||= window.setTimeout(show, measures(state) ? seldom : soon);
    }
  };
  const open = () => {
    events = new EventSource(path("runs", id, "events"));
    for (const kind of kinds) {
      events.addEventListener(kind, (e) => take(kind, (e as MessageEvent<string>).data));
    }
    events.addEventListener("error", () => {
      show(true);
      if (events.readyState === EventSource.CLOSED) {
        refused();
        again = window.setTimeout(open, retry);
      }
    });
  };
  open();
  return () => {
    clearTimeout(due);
    clearTimeout(again);
    events.close();
  };
}

function parsed(text: string): Line | null {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return null; // a line that was cut off
  }
}
