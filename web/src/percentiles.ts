// Response time by percentile: a line a target, on axes where a tail is as wide as the body.

import uPlot from "uplot";
import * as colors from "./colors";
import type { Latency } from "./data";
import { Legend } from "./legend";
import { axis, describe, narrow, steps } from "./plot";
import * as units from "./units";

const named = [0.5, 0.9, 0.99, 0.999, 0.9999];

// place puts a quantile on the axis: each further nine is one step.
function place(q: number): number {
  return -Math.log10(1 - q);
}

export class Percentiles {
  private plot: uPlot | null = null;
  private readonly hidden = new Set<string>();

  constructor(
    private readonly box: HTMLElement,
    private readonly keys: HTMLElement,
  ) {}

  draw(l: Latency): void {
    this.plot?.destroy();
    this.plot = null;
    this.keys.replaceChildren();
    const width = this.box.clientWidth;
    if (l.lines.length === 0 || width === 0) {
      return;
    }
    const entries = l.lines.map((line, i) => ({ name: line.target, ...colors.line(i) }));
    const legend = new Legend(this.keys, entries, this.hidden, (i, show) => {
      this.plot?.setSeries(i + 1, { show });
    });
    const data: uPlot.AlignedData = [l.quantiles.map(place), ...l.lines.map((line) => line.ms)];
    this.plot = new uPlot(this.options(l, legend, width), data, this.box);
    describe(
      this.plot,
      `Response time by percentile at ${l.title}, ${l.lines.length} targets; ` +
        "the table has the numbers.",
    );
  }

  private options(l: Latency, legend: Legend, width: number): uPlot.Options {
    const end = place(l.quantiles[l.quantiles.length - 1] ?? 0.9999);
    const marks = named.filter((q) => place(q) <= end + 1e-9);
    return {
      width,
      height: width < narrow ? 300 : 380,
      padding: [12, 24, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: [place(0.5), end] },
        y: { distr: 3, range: (_u, lo, hi) => [lo / 1.15, hi * 1.15] },
      },
      axes: [
        axis({
          label: "percentile",
          size: 32,
          splits: () => marks.map(place),
          values: () => marks.map(units.percentile),
        }),
        axis({
          label: "response time, ms",
          size: 46,
          splits: (_u, _i, lo, hi) => steps(lo, hi),
          filter: (_u, splits) => splits,
          values: (_u, ys) => ys.map((y) => String(Number(y.toPrecision(3)))),
        }),
      ],
      series: [
        {},
        ...l.lines.map((line, i) => ({
          label: line.target,
          stroke: colors.line(i).color,
          dash: colors.line(i).dash,
          width: 2,
          show: !this.hidden.has(line.target),
          points: { show: false },
        })),
      ],
      hooks: {
        setCursor: [(u) => read(u, l, legend)],
      },
    };
  }
}

function read(u: uPlot, l: Latency, legend: Legend): void {
  const at = u.cursor.idx;
  legend.read(
    l.lines.map((line) => {
      const ms = at === null || at === undefined ? null : line.ms[at];
      const q = l.quantiles[at ?? -1];
      if (ms === null || ms === undefined || q === undefined) {
        return null;
      }
      return `p${units.percentile(q)} ${units.milliseconds(ms)}`;
    }),
  );
}
