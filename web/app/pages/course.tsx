// The run so far: the results of all trials by time, a figure for each load, a color for each
// target, and which objectives were met.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import * as colors from "../../src/colors";
import { type Entry, Legend } from "../../src/legend";
import { axis, cursor, Keys, narrow } from "../../src/plot";
import { left, type Point, type State } from "../follow";
import { Box } from "../parts";
import { useRedraw } from "../theme";
import * as words from "../words";

export function Course({ s }: { s: State }) {
  if (s.points.length === 0) {
    return null;
  }
  const [least, most] = left(s) ?? [0, 0];
  const end = (s.now - s.begun) / 1e3 + (least + most) / 2;
  const rows = distinct(s.points.map((p) => p.row));
  const loads = distinct(s.points.map((p) => p.load));
  return (
    <>
      <h3>Results so far</h3>
      <div class="multiples">
        {loads.map((load) => (
          <Figure key={load} rows={rows} end={end}
            points={s.points.filter((p) => p.load === load)} />
        ))}
      </div>
      <Objectives points={s.points} />
    </>
  );
}

function distinct(names: string[]): string[] {
  return [...new Set(names)];
}

interface Shown {
  points: Point[];
  rows: string[];
  end: number; // of the run, as far as known: seconds since its begin
}

// A figure is drawn again when there is one point more, and not with every line of the run.
function Figure({ points, rows, end }: Shown) {
  const box = useRef<HTMLDivElement>(null);
  const reading = useRef<HTMLParagraphElement>(null);
  const names = useRef<HTMLDivElement>(null);
  const drawn = useRef<{ plot: uPlot; points: Point[] } | null>(null);
  const made = useRef<{ keys: Keys; legend: Legend } | null>(null);
  const redraw = useRedraw();
  const first = points[0]!;
  const what = words.metric(first.load, first.metric);
  useEffect(() => {
    const at = box.current!;
    made.current ??= {
      keys: new Keys(at, reading.current!, (k) => read(drawn.current?.points[k])),
      legend: new Legend(names.current!, (k, show) => {
        drawn.current?.plot.setSeries(k + 1, { show });
      }),
    };
    const { keys, legend } = made.current;
    const plot = new uPlot(options({ points, rows, end }, at.clientWidth), data(points, rows), at);
    drawn.current = { plot, points };
    keys.attach([plot]);
    legend.fill(rows.map((name, k): Entry => ({ name, ...colors.line(k) })));
    rows.forEach((name, k) => plot.setSeries(k + 1, { show: !legend.hides(name) }));
    return () => plot.destroy();
  }, [points.length, rows.length, redraw]);
  return (
    <section class="figure trend" aria-label={what + " so far"}>
      <h2>{what}</h2>
      <div class="keys" role="group" aria-label="Lines to show" ref={names} />
      <div class="plot" ref={box} role="group" aria-label={what + " by time"} />
      <p class="reading" ref={reading} aria-live="polite" />
      <details class="data">
        <summary>The values as a table</summary>
        <Box label="Values">
          <table class="plain">
            <caption>{what}, by trial</caption>
            <thead>
              <tr>
                {["after", "target", what].map((h) => <th key={h} scope="col">{h}</th>)}
              </tr>
            </thead>
            <tbody>
              {points.map((p, k) => (
                <tr key={k}>
                  <th scope="row">{words.lasting(p.at)}</th>
                  <td>{p.row}</td>
                  <td>{words.amount(p.value ?? null, p.unit)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Box>
      </details>
    </section>
  );
}

function read(p: Point | undefined): string {
  return p
    ? `${p.row}, after ${words.lasting(p.at)}: ${words.amount(p.value ?? null, p.unit)}`
    : "";
}

// data has a column for each row; trials of a start end at one time, or nearly.
function data(points: Point[], rows: string[]): uPlot.AlignedData {
  return [
    points.map((p) => p.at),
    ...rows.map((row) => points.map((p) => (p.row === row ? (p.value ?? null) : null))),
  ];
}

function options({ points, rows, end }: Shown, width: number): uPlot.Options {
  const unit = points[0]?.unit ?? "";
  const [name, length] = scale(end);
  const round = (x: number) => String(Math.round((10 * x) / length) / 10);
  return {
    width,
    height: width < narrow ? 190 : 230,
    legend: { show: false },
    cursor,
    scales: {
      x: { time: false, range: () => [0, Math.max(end, 1)] },
      y: { range: (_u, _lo, hi) => [0, hi > 0 ? hi * 1.08 : 1] },
    },
    axes: [
      axis({ label: name + " since the run began", space: 70,
        incrs: [1, 2, 5, 10, 15, 30, 60, 120].map((n) => n * length),
        values: (_u, xs) => xs.map(round) }),
      axis({ size: 76, values: (_u, xs) => xs.map((x) => words.tick(x, unit)) }),
    ],
    series: [
      {},
      ...rows.map((_, k): uPlot.Series => {
        const { color, dash } = colors.line(k);
        return { stroke: color, dash, width: 1, spanGaps: true,
          points: { show: true, size: 7, fill: color } };
      }),
    ],
  };
}

// scale is the unit of the time axis, in seconds.
function scale(end: number): [name: string, seconds: number] {
  if (end < 180) {
    return ["seconds", 1];
  }
  return end < 3 * 3600 ? ["minutes", 60] : ["hours", 3600];
}

// Objectives are those of searches for a capacity: of how many trials some rate met them.
function Objectives({ points }: { points: Point[] }) {
  const all = points.filter((p) => p.objective);
  const lines = distinct(all.map((p) => [p.row, p.load, p.objective].join("\n"))).map((key) => {
    const of = all.filter((p) => [p.row, p.load, p.objective].join("\n") === key);
    return { p: of[0]!, met: of.filter((p) => p.met).length, of: of.length };
  });
  if (lines.length === 0) {
    return null;
  }
  return (
    <>
      <h3>Objectives so far</h3>
      <ul class="reasons">
        {lines.map(({ p, met, of }) => (
          <li key={p.row + p.load + p.objective}>
            {met === of ? "✓" : "✗"} {p.row}, {p.load}: {p.objective}, met in {met} of{" "}
            {words.count(of, "trial")}
          </li>
        ))}
      </ul>
    </>
  );
}
