// How a target's trials went over time: throughput and p99 per interval, and what the probe saw of
// processor and memory, on one common time axis.

import uPlot from "uplot";
import * as colors from "./colors";
import type { TrialSeries } from "./data";
import { Legend } from "./legend";
import { axis, describe } from "./plot";
import * as units from "./units";

interface Panel {
  label: string;
  of: (t: TrialSeries) => { seconds: number[]; values: (number | null)[] } | null;
  print: (value: number) => string;
}

const panels: Panel[] = [
  {
    label: "requests/s",
    of: (t) => ({ seconds: t.seconds, values: t.perS }),
    print: units.rate,
  },
  {
    label: "p99, ms",
    of: (t) => (t.p99Ms.length > 0 ? { seconds: t.seconds, values: t.p99Ms } : null),
    print: units.milliseconds,
  },
  {
    label: "service CPU, cores",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.cores },
    print: (x) => x.toFixed(2) + " cores",
  },
  {
    label: "memory, MiB",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.mib },
    print: (x) => x.toFixed(0) + " MiB",
  },
];

const height = 190;

// seconds are the steps that people count time in.
const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600];

export class Series {
  private plots: uPlot[] = [];
  private readonly hidden = new Set<string>();

  constructor(
    private readonly box: HTMLElement,
    private readonly keys: HTMLElement,
  ) {}

  draw(target: string, trials: TrialSeries[]): void {
    this.plots.forEach((p) => p.destroy());
    this.plots = [];
    this.keys.replaceChildren();
    const width = this.box.clientWidth;
    if (trials.length === 0 || width === 0) {
      return;
    }
    const entries = trials.map((t, i) => ({ name: name(t), ...colors.line(i) }));
    const legend = new Legend(this.keys, entries, this.hidden, (i, show) => {
      this.plots.forEach((p) => p.setSeries(i + 1, { show }));
    });
    const end = Math.max(...trials.flatMap((t) => [...t.seconds, ...(t.probe?.seconds ?? [])]));
    for (const panel of panels) {
      const data = join(panel, trials);
      if (data) {
        const options = this.options(panel, trials, legend, width, end);
        const plot = new uPlot(options, data, this.box);
        describe(plot, `${panel.label} of ${target} over time, ${trials.length} trials`);
        this.plots.push(plot);
      }
    }
  }

  private options(
    panel: Panel,
    trials: TrialSeries[],
    legend: Legend,
    width: number,
    end: number,
  ): uPlot.Options {
    return {
      width,
      height,
      padding: [12, 24, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { setScale: false, x: false, y: false },
        sync: { key: "time" },
        points: { size: 6 },
      },
      scales: {
        x: { time: false, range: [0, end] },
        y: { range: (_u, _lo, hi) => [0, (hi || 1) * 1.08] },
      },
      axes: [
        axis({ size: 26, incrs: seconds, values: (_u, xs) => xs.map((x) => `${x} s`) }),
        axis({
          label: panel.label,
          size: 46,
          values: (_u, ys) => ys.map((y) => units.tick(units.rate(y))),
        }),
      ],
      series: [
        {},
        ...trials.map((t, i) => ({
          label: name(t),
          stroke: colors.line(i).color,
          dash: colors.line(i).dash,
          width: 1.75,
          spanGaps: true,
          show: !this.hidden.has(name(t)),
          points: { show: false },
        })),
      ],
      hooks: {
        setCursor: [
          (u) => {
            if (u.cursor.event) {
              legend.read(texts(u, panel));
            }
          },
        ],
      },
    };
  }
}

function name(t: TrialSeries): string {
  return `block ${t.block}` + (t.verdict === "VALID" ? "" : ` (${t.verdict})`);
}

function texts(u: uPlot, panel: Panel): (string | null)[] {
  const at = u.cursor.idx;
  return u.data.slice(1).map((ys) => {
    const y = at === null || at === undefined ? null : ys[at];
    return y === null || y === undefined ? null : panel.print(y);
  });
}

// join lays trials of different clocks on one time axis; nothing is interpolated.
function join(panel: Panel, trials: TrialSeries[]): uPlot.AlignedData | null {
  const tables: uPlot.AlignedData[] = [];
  let any = false;
  for (const t of trials) {
    const s = panel.of(t);
    any = any || (s !== null && s.seconds.length > 0);
    tables.push(s ? [s.seconds, s.values] : [[], []]);
  }
  return any ? uPlot.join(tables) : null;
}
