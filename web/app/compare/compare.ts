// comparison.Compare of two published runs: which rows stand against each other, metric by metric.

import type { Comparison, Difference, Pair, Point, Ratio, Row, Value } from "../model";
import { Refused } from "../refused";
import type { Sides } from "../source";
import { judge } from "./judge";
import { differences } from "./method";
import { type Metric, type Numbers, rows, scenario, type Target, target } from "./numbers";
import { geometric, moderated, paired, type Tested, unpaired } from "./stats";
import { title, warn } from "./words";

// Pairing is two rows to be compared.
export interface Pairing {
  scenario: string;
  a: Target;
  b: Target;
}

interface Named {
  a: string; // a row's name; empty: each that the other side has too
  b: string;
}

// compare is B against A. Rows of one run are paired within its blocks; rows of two runs are not,
// whatever their block numbers, because nothing ties those blocks together in time.
export function compare(a: Numbers, b: Numbers, sides: Sides): Comparison {
  const same = a.run === b.run;
  const named = { a: rowOf(sides.a), b: rowOf(sides.b) };
  const missing: string[] = [];
  const pairings = pair(a, b, same, named, missing);
  const c: Comparison = {
    title: "",
    paired: same,
    confidence: a.confidence,
    tests: 0,
    unlike: [],
    told: [],
    warnings: [],
    missing,
    reproduce: same ? [a.reproduce] : [a.reproduce, b.reproduce],
    pairs: [],
  };
  if (sides.control) {
    c.control = sides.control;
  }
  methods(c, pairings);
  if ((c.unlike ?? []).length > 0 && !sides.unlike) {
    const lines = (c.unlike ?? []).map((d) => `  ${d.aspect}: ${d.a} against ${d.b}`);
    throw new Refused(
      ["compare: the two were not measured in the same way:", ...lines].join("\n") +
        "\nto compare them all the same, under a banner that says so, tick the box above",
    );
  }
  checkControl(a, b, same, sides.control);
  for (const p of pairings) {
    if (p.b.subject.target !== sides.control) {
      c.pairs?.push(one(c, a, b, p, sides.control));
    }
  }
  if (c.pairs?.length === 0) {
    throw new Refused(
      `divide by ${sides.control}: nothing is left to compare, for it is the only row that both ` +
        "runs have; leave out the control",
    );
  }
  judge(c, pairings);
  c.title = title(c);
  warn(c, a, b, pairings);
  return c;
}

function rowOf(side: string): string {
  const at = side.indexOf(":");
  return at < 0 ? "" : side.slice(at + 1);
}

// pair finds which rows stand against each other. Within one run and without names these are the
// ones whose ratios the run's own report shows; between runs, those of one name.
function pair(a: Numbers, b: Numbers, same: boolean, named: Named, missing: string[]): Pairing[] {
  need(a, named.a);
  need(b, named.b);
  const nameA = same ? named.a : named.a || named.b;
  const nameB = same ? named.b : named.b || named.a;
  const out: Pairing[] = [];
  for (const sc of b.scenarios) {
    if (!scenario(a, sc.name)) {
      missing.push(`scenario "${sc.name}" is in B only`);
      continue;
    }
    for (const t of sc.targets) {
      const name = t.subject.target;
      if (nameB !== "" && name !== nameB) {
        continue;
      }
      const against = nameA || (same ? t.reference : name);
      const other = target(a, sc.name, against);
      if (other && !(same && against === name)) {
        out.push({ scenario: sc.name, a: other, b: t });
      } else if (!same) {
        missing.push(`${name} is in B only`);
      }
    }
  }
  missing.push(...only(a, b, nameA, same));
  if (out.length === 0) {
    throw new Refused(
      same
        ? `compare rows of ${a.run}: say which two`
        : `compare ${a.run} with ${b.run}: no row is in both; name one of each`,
    );
  }
  return out;
}

function need(n: Numbers, name: string): void {
  if (name !== "" && !rows(n).includes(name)) {
    throw new Refused(
      `find "${name}" in ${n.run}: no such row; there are ${rows(n).join(", ")}`,
    );
  }
}

// only names what side a alone has.
function only(a: Numbers, b: Numbers, name: string, same: boolean): string[] {
  if (same || name !== "") {
    return [];
  }
  return a.scenarios.flatMap((sc) =>
    scenario(b, sc.name)
      ? sc.targets
          .filter((t) => !target(b, sc.name, t.subject.target))
          .map((t) => `${t.subject.target} is in A only`)
      : [`scenario "${sc.name}" is in A only`],
  );
}

// methods collects what all pairs do not share, each difference once.
function methods(c: Comparison, pairings: Pairing[]): void {
  const add = (list: Difference[] | null, from: Difference[]) => {
    for (const d of from) {
      if (!list?.some((x) => x.aspect === d.aspect && x.a === d.a && x.b === d.b)) {
        list?.push(d);
      }
    }
  };
  for (const p of pairings) {
    const { binding, told } = differences(p.a.method, p.b.method);
    add(c.unlike, binding);
    // What builds one service does not build another.
    const one = p.a.service === p.b.service;
    add(c.told, one ? told : told.filter((d) => d.aspect !== "tools"));
  }
  const prints = new Set(pairings.flatMap((p) => [p.a.subject.method, p.b.subject.method]));
  const [print] = prints;
  if (prints.size === 1 && print) {
    c.fingerprint = print;
  }
}

function checkControl(a: Numbers, b: Numbers, same: boolean, name: string): void {
  if (name === "") {
    return;
  }
  if (same) {
    throw new Refused(
      `divide by ${name}: both sides come from one run, whose blocks pair them already; leave ` +
        "out the control",
    );
  }
  need(a, name);
  need(b, name);
  const [x, y] = [a.artifacts[name] ?? "", b.artifacts[name] ?? ""];
  if (x !== y || x === "") {
    throw new Refused(
      `divide by ${name}: it is not the same artifact in both runs (${x || "unknown"} and ` +
        `${y || "unknown"}), so that its own change would be in the numbers; choose ` +
        "another control",
    );
  }
}

function one(c: Comparison, a: Numbers, b: Numbers, p: Pairing, control: string): Pair {
  const out: Pair = { scenario: p.scenario, a: p.a.subject, b: p.b.subject, rows: [] };
  const loads = [...(scenario(b, p.scenario)?.loads ?? []), { name: "", model: "" }];
  const models = loads.map((l) => l.model);
  for (const l of loads) {
    for (const m of metricsOf(p, l.name)) {
      if (usual(m, models)) {
        const row = rowed(c, of(p.a, m), of(p.b, m));
        if (control && row.ratio) {
          divide(c, row, target(a, p.scenario, control), target(b, p.scenario, control));
        }
        out.rows?.push(row);
      }
    }
  }
  return out;
}

// metricsOf are those of a load that either side has: a side without a usable trial has none.
function metricsOf(p: Pairing, load: string): Metric[] {
  const out: Metric[] = [];
  for (const m of [...p.b.metrics, ...p.a.metrics]) {
    if (m.load === load && !out.some((x) => x.metric === m.metric)) {
      out.push(m);
    }
  }
  return out;
}

// usual is table.Usual, of metrics that tell of the service and are shown without asking.
function usual(m: Metric, models: string[]): boolean {
  const closed = models.includes("closed");
  switch (m.model) {
    case "closed":
      return !m.latency || !models.includes("open");
    case "capacity":
      return m.metric === "capacity" || !closed;
    case "open":
      return m.latency || m.metric === "achieved" || (!closed && m.metric !== "throughput");
  }
  return true;
}

function own(t: Target, load: string, metric: string): Metric | undefined {
  return t.metrics.find((m) => m.load === load && m.metric === metric);
}

// of is a row's own metric, or one that says that it has none.
function of(t: Target, m: Metric): Metric {
  const found = own(t, m.load, m.metric);
  if (found) {
    return found;
  }
  const withheld = t.subject.blocks > 0 ? "no trial was offered this load" : "no trial is usable";
  const value: Value = { n: 0, centre: null, lo: null, hi: null, mean: null, withheld, points: [] };
  return { ...m, value, noise: null, alone: false };
}

function rowed(c: Comparison, a: Metric, b: Metric): Row {
  const row: Row = {
    load: b.load,
    model: b.model,
    metric: b.metric,
    unit: b.unit,
    better: b.better,
    a: { ...a.value },
    b: { ...b.value },
    ratio: null,
    pHolm: null,
    outcome: "none",
    word: "",
    detectable: null,
  };
  if (!a.value.withheld && !b.value.withheld && !constant(row)) {
    row.ratio = ratio(c, row, a, b);
  }
  return row;
}

const pointsOf = (v: Value) => v.points ?? [];
const values = (points: Point[]) => points.map((p) => p.value);

// constant tells whether all values of both sides are exact, or all are zero.
function constant(r: Row): boolean {
  if (r.a.assumption === "exact" && r.b.assumption === "exact") {
    return true;
  }
  return [...pointsOf(r.a), ...pointsOf(r.b)].every((p) => p.value === 0);
}

// byBlock are a side's values, one a block, in the order of blocks.
function byBlock(points: Point[]): Map<number, number> {
  const found = new Map(points.map((p) => [p.block, p.value]));
  return new Map([...found].sort(([x], [y]) => x - y));
}

// align lays the values of the blocks that both have side by side, in block order.
function align(a: Point[], b: Point[]): { as: number[]; bs: number[]; blocks: number[] } {
  const [x, y] = [byBlock(a), byBlock(b)];
  const blocks = [...x.keys()].filter((block) => y.has(block));
  const at = (side: Map<number, number>) => blocks.map((block) => side.get(block) ?? NaN);
  return { as: at(x), bs: at(y), blocks };
}

function ratio(c: Comparison, row: Row, a: Metric, b: Metric): Ratio {
  let [as, bs] = [values(pointsOf(row.a)), values(pointsOf(row.b))];
  const alone = a.alone || b.alone; // as in duets
  if (c.paired) {
    const both = align(pointsOf(row.a), pointsOf(row.b));
    [as, bs] = [both.as, both.bs];
    row.blocks = both.blocks.map((block, i) => ({
      block,
      ratio: (bs[i] ?? NaN) / (as[i] ?? NaN),
    }));
  }
  row.a.mean = geometric(as);
  row.b.mean = geometric(bs);
  if (c.paired) {
    return ofOneRun(paired(as, bs, c.confidence), a, b, alone, c.confidence);
  }
  return ofTwoRuns(as, bs, a, b, alone, c.confidence);
}

// ofOneRun is stats.Blocks.Ratio.
function ofOneRun(r: Tested, a: Metric, b: Metric, alone: boolean, confidence: number): Tested {
  if (alone || !a.noise || !b.noise || r.lo === null || r.warning) {
    return r;
  }
  const x = { variance: a.noise.shared, free: a.noise.sharedFree };
  const y = { variance: b.noise.shared, free: b.noise.sharedFree };
  return moderated(r, x, y, [r.n, r.n], confidence);
}

// ofTwoRuns is stats.Blocks.Unpaired.
function ofTwoRuns(
  as: number[],
  bs: number[],
  a: Metric,
  b: Metric,
  alone: boolean,
  confidence: number,
): Tested {
  const r = unpaired(as, bs, confidence);
  const fits = a.noise && b.noise && a.noise.moodFree >= 2 && b.noise.moodFree >= 2;
  if (alone || !fits || !a.noise || !b.noise || r.lo === null || r.warning) {
    return r;
  }
  const x = { variance: a.noise.level, free: a.noise.levelFree };
  const y = { variance: b.noise.level, free: b.noise.levelFree };
  return moderated(r, x, y, [as.length, bs.length], confidence);
}

// divide makes a row's ratio one of ratios: each trial's value over the control's in the same
// block, B's run to A's. What the machine did to both in a run cancels, block by block.
function divide(c: Comparison, r: Row, ca?: Target, cb?: Target): void {
  const ma = ca && own(ca, r.load, r.metric);
  const mb = cb && own(cb, r.load, r.metric);
  if (!ma || !mb || ma.value.withheld || mb.value.withheld) {
    const warning = "the control has no such number";
    r.ratio = { n: 0, centre: null, lo: null, hi: null, p: 1, sdLog: null, warning };
    return;
  }
  const over = (points: Point[], control: Point[]) => {
    const { as, bs } = align(points, control);
    return as.map((x, i) => x / (bs[i] ?? NaN));
  };
  const [pa, pb] = [pointsOf(ma.value), pointsOf(mb.value)];
  r.control = unpaired(values(pa), values(pb), c.confidence);
  const as = over(pointsOf(r.a), pa);
  const bs = over(pointsOf(r.b), pb);
  r.ratio = unpaired(as, bs, c.confidence);
}
