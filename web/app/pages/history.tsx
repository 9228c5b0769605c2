// How the numbers of a suite went from run to run, and where their level changed (prony trend).

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import * as colors from "../../src/colors";
import { axis, cursor, Keys, narrow } from "../../src/plot";
import type { Change, Series, Trend } from "../model";
import { Ask, Box, Select, useLoaded } from "../parts";
import { replace, type Route, to } from "../route";
import { type Group, source } from "../source";
import { useRedraw } from "../theme";
import * as words from "../words";

export function History({ route }: { route: Route }) {
  const loaded = useLoaded(() => source.groups(), []);
  return (
    <>
      <h1 tabIndex={-1}>History</h1>
      <Ask of={loaded}>{(groups) => <Choice groups={groups} query={route.query} />}</Ask>
    </>
  );
}

function Choice({ groups, query }: { groups: Group[]; query: URLSearchParams }) {
  const suite = query.get("suite") ?? "";
  const key = query.get("key") ?? "";
  const group =
    groups.find((g) => g.key === key) ?? groups.find((g) => g.suite === suite) ?? groups[0];
  if (!group) {
    return <p class="lead">There is no run with a usable number yet.</p>;
  }
  return <Chosen groups={groups} group={group} target={query.get("target") ?? ""} />;
}

interface ChosenProps {
  groups: Group[];
  group: Group;
  target: string; // empty: the first one
}

function Chosen({ groups, group, target }: ChosenProps) {
  const loaded = useLoaded(() => source.trend(group.key), [group.key]);
  const value = loaded && "value" in loaded ? loaded.value : null;
  const names = [...new Set((value?.series ?? []).map((s) => s.target))];
  const set = (key: string, chosen: string) => replace(to("history", "", { key, target: chosen }));
  return (
    <>
      <form class="filters" aria-label="Which history" onSubmit={(e) => e.preventDefault()}>
        <Select label="Suite" value={group.key} changed={(key) => set(key, "")}
          options={groups.map((g) => [g.key, [g.suite, g.machine].filter(Boolean).join(" · ")])}
        />
        <Select label="Target" value={target || (names[0] ?? "")}
          changed={(chosen) => set(group.key, chosen)} options={names.map((n) => [n, n])} />
      </form>
      <Ask of={loaded}>{(t) => <Shown t={t} target={target} />}</Ask>
    </>
  );
}

function Shown({ t, target }: { t: Trend; target: string }) {
  const series = t.series ?? [];
  const name = target || series[0]?.target;
  const found = series.filter((s) => s.target === name);
  return (
    <>
      <p class="lead">
        {words.count(t.runs, "run")}. The probability that histories without a change show any is
        {" "}{t.alpha}, all together. Runs that were not measured in the same way are apart.
      </p>
      <ul class="reasons">{(t.notes ?? []).map((n) => <li key={n}>{n}</li>)}</ul>
      <div class="multiples">
        {found.map((s) => (
          <Figure key={[s.scenario, s.configHash, words.series(s)].join("\n")} s={s} />
        ))}
      </div>
      {found.length === 0 && <p class="lead">No run has a number of {name ?? "any target"}.</p>}
    </>
  );
}

function said(c: Change, unit: string): string {
  return `since run ${c.run} ${c.text}: ${words.change(c.after / c.before)}, from ` +
    `${words.amount(c.before, unit)} to ${words.amount(c.after, unit)}`;
}

// leastRuns is from how many runs on a change of level can be found: three before it, three after.
const leastRuns = 6;

function unchanged(runs: number): string {
  return runs < leastRuns
    ? `Too few runs to find a change of level: ${runs} of at least ${leastRuns}.`
    : "No significant change of level.";
}

function Figure({ s }: { s: Series }) {
  const changes = s.changes ?? [];
  const what = words.series(s);
  return (
    <section class="figure trend" aria-label={`${s.scenario}: ${what}`}>
      <h2>{what}</h2>
      <p class="foot">
        {s.scenario} · method {s.configHash} · {words.count(s.points.length, "run")}
      </p>
      {changes.length === 0 && <p class="says">{unchanged(s.points.length)}</p>}
      {changes.map((c) => (
        <p key={c.index} class={"says " + (c.worse ? "worse" : "better")}>
          {said(c, s.unit)}
        </p>
      ))}
      <Line s={s} />
      <details class="data">
        <summary>The values as a table</summary>
        <Box label="Values">
          <table class="plain">
            <caption>{what}, by run</caption>
            <thead>
              <tr>
                {["run", "commit", "trials", "median", "from", "to"].map((h) => (
                  <th key={h} scope="col">{h}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {s.points.map((p) => (
                <tr key={p.run}>
                  <th scope="row"><a href={to("run", p.run)}>{p.run}</a></th>
                  <td>{p.commit.slice(0, 10)}</td>
                  <td>{p.n}</td>
                  <td>{words.amount(p.value, s.unit)}</td>
                  <td>{words.amount(p.lo, s.unit)}</td>
                  <td>{words.amount(p.hi, s.unit)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Box>
      </details>
    </section>
  );
}

// Line draws medians with their intervals by run: in order and not by time, so that a busy night
// does not hide in a week.
function Line({ s }: { s: Series }) {
  const box = useRef<HTMLDivElement>(null);
  const reading = useRef<HTMLParagraphElement>(null);
  const redraw = useRedraw();
  useEffect(() => {
    const at = box.current;
    if (!at || !reading.current) {
      return undefined;
    }
    const plot = new uPlot(options(s, at.clientWidth), data(s), at);
    const keys = new Keys(at, reading.current, (k) => read(s, k));
    keys.attach([plot]);
    return () => plot.destroy();
  }, [s, redraw]);
  return (
    <>
      <div class="plot" ref={box} role="group"
        aria-label={words.series(s) + " by run"} />
      <p class="reading" ref={reading} aria-live="polite" />
    </>
  );
}

function read(s: Series, k: number): string {
  const p = s.points[k];
  return p ? `${p.run}: ${words.amount(p.value, s.unit)}` : "";
}

function data(s: Series): uPlot.AlignedData {
  return [
    s.points.map((_, k) => k + 1),
    s.points.map((p) => p.value),
    s.points.map((p) => p.lo),
    s.points.map((p) => p.hi),
  ];
}

function options(s: Series, width: number): uPlot.Options {
  const color = colors.line(0).color;
  const hidden = { stroke: "transparent", points: { show: false } };
  return {
    width,
    height: width < narrow ? 190 : 230,
    legend: { show: false },
    cursor,
    scales: { x: { time: false }, y: { range: (_u, lo, hi) => roomy(lo, hi, mostOf(s)) } },
    axes: [
      axis({ label: "runs by date, the oldest first", space: 84, incrs: wholes,
        values: (_u, xs) => dates(s, xs) }),
      axis({ size: 76, values: (_u, xs) => xs.map((x) => words.amount(x, s.unit)),
        ...(s.unit === "B" ? { incrs: binary } : {}) }),
    ],
    series: [
      {},
      { stroke: color, width: 2, points: { show: true, size: 5, fill: color } },
      hidden,
      hidden,
    ],
    bands: [{ series: [3, 2], fill: colors.faint(color) }],
    hooks: { draw: [(u) => mark(u, s)] },
  };
}

// wholes are the distances of ticks between runs.
const wholes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

// binary are round numbers of bytes: 1, 2 and 5 of a power of ten of KiB, MiB or GiB.
const binary = [1, 2 ** 10, 2 ** 20, 2 ** 30].flatMap((unit) =>
  [1, 2, 5, 10, 20, 50, 100, 200, 500].map((n) => n * unit));

// dates are the days of runs at ticks; of a day that stands at the tick before, the time.
function dates(s: Series, xs: number[]): string[] {
  let before = "";
  return xs.map((x) => {
    const time = s.points[x - 1]?.time;
    if (time === undefined) {
      return "";
    }
    const [day = "", clock = ""] = words.moment(time).split(" ");
    const text = day === before ? clock : day;
    before = day;
    return text;
  });
}

// mostOf is the largest value that a metric can have: no more than all requests are answered.
function mostOf(s: Series): number {
  return s.metric === "achieved" ? 1 : Infinity;
}

function roomy(lo: number, hi: number, most: number): [number, number] {
  const room = Math.max((hi - lo) * 0.1, Math.abs(hi) * 0.02) || 1;
  return [Math.max(0, lo - room), Math.max(hi, Math.min(hi + room, most))];
}

// mark draws a line before the first run of each new level.
function mark(u: uPlot, s: Series): void {
  const { top, height } = u.bbox;
  for (const c of s.changes ?? []) {
    const x = u.valToPos(c.index + 0.5, "x", true);
    u.ctx.save();
    u.ctx.strokeStyle = colors.ink();
    u.ctx.setLineDash([6, 4]);
    u.ctx.beginPath();
    u.ctx.moveTo(x, top);
    u.ctx.lineTo(x, top + height);
    u.ctx.stroke();
    u.ctx.restore();
  }
}
