// How a target's trials went over time: the warm-up, shaded, and the window with throughput and p99
// per interval, and what the probe saw of processor and memory, on one time axis with one cursor.

import uPlot from "uplot";
import * as colors from "./colors";
import type { TargetSeries, TrialSeries } from "./data";
import { Legend } from "./legend";
import { axis, chooser, cursor, font, Keys, part, type Plot } from "./plot";
import * as units from "./units";

interface Panel {
  label: string;
  of: (t: TrialSeries) => { seconds: number[]; values: (number | null)[] } | null;
  print: (value: number) => string;
  warm: boolean; // whether the warm-up has values for it
}

const panels: Panel[] = [
  {
    label: "requests/s",
    of: (t) => ({
      seconds: [...(t.warmup?.seconds ?? []), ...t.seconds],
      values: [...(t.warmup?.perS ?? []), ...t.perS],
    }),
    print: (x) => units.rate(x) + "/s",
    warm: true,
  },
  {
    label: "p99, ms",
    of: (t) => (t.p99Ms.length > 0 ? { seconds: t.seconds, values: t.p99Ms } : null),
    print: (x) => "p99 " + units.milliseconds(x),
    warm: false,
  },
  {
    label: "service CPU, cores",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.cores },
    print: (x) => x.toFixed(2) + " cores",
    warm: false,
  },
  {
    label: "memory, MiB",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.mib },
    print: (x) => x.toFixed(0) + " MiB",
    warm: false,
  },
];

const height = 190;

// levelled is up to how many trials levels are drawn: more would be a net.
const levelled = 3;

// seconds are the steps that people count time in.
const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600];

export class Series implements Plot {
  private plots: uPlot[] = [];
  private trials: TrialSeries[] = [];
  private readonly box: HTMLElement;
  private readonly legend: Legend;
  private readonly keys: Keys;
  private readonly target: HTMLSelectElement;
  private readonly load: HTMLSelectElement;

  constructor(
    section: HTMLElement,
    private readonly targets: TargetSeries[],
  ) {
    this.box = part(section, ".plot");
    this.legend = new Legend(part(section, ".keys"), (i, show) => {
      this.plots.forEach((p) => p.setSeries(i + 1, { show }));
    });
    this.keys = new Keys(this.box, part(section, ".reading"), (i) => this.say(i));
    this.target = part(section, "select.target");
    this.load = part(section, "select.load");
    const names = targets.map((s, i) => ({ value: String(i), text: s.target }));
    const loads = new Set(targets.flatMap((s) => s.trials.map((t) => t.load)));
    chooser(this.target, names, () => this.draw());
    chooser(
      this.load,
      [...loads].map((l) => ({ value: l, text: l })),
      () => this.draw(),
    );
  }

  draw(): void {
    this.plots.forEach((p) => p.destroy());
    this.plots = [];
    const width = this.box.clientWidth;
    const all = this.targets[Number(this.target.value)]?.trials ?? [];
    this.trials = all.filter((t) => t.load === this.load.value);
    if (width === 0) {
      return;
    }
    this.legend.fill(this.trials.map((t, i) => ({ name: name(t), ...this.color(i) })));
    const start = Math.min(0, ...this.trials.map((t) => begin(t)));
    const end = Math.max(
      1,
      ...this.trials.flatMap((t) => [
        ...t.seconds.slice(-1),
        ...(t.probe?.seconds.slice(-1) ?? []),
      ]),
    );
    for (const panel of panels) {
      const data = join(panel, this.trials);
      if (data) {
        this.plots.push(new uPlot(this.options(panel, width, [start, end]), data, this.box));
      }
    }
    this.keys.attach(this.plots);
  }

  private options(panel: Panel, width: number, range: [number, number]): uPlot.Options {
    return {
      width,
      height,
      padding: [12, 24, 0, 0],
      legend: { show: false },
      cursor: { ...cursor, sync: { key: "time" }, points: { size: 6 } },
      scales: {
        x: { time: false, range },
        y: { range: (_u, _lo, hi) => [0, (hi || 1) * 1.08] },
      },
      axes: [
        axis({ size: 26, incrs: seconds, values: (_u, xs) => xs.map((x) => `${x} s`) }),
        axis({
          label: panel.label,
          size: 50,
          values: (_u, ys) => ys.map((y) => units.tick(units.rate(y))),
        }),
      ],
      series: [{}, ...this.trials.map((t, i) => this.line(t, i))],
      hooks: {
        drawClear: [(u) => shade(u, range[0], panel.warm)],
        draw: panel.warm ? [(u) => this.mark(u)] : [],
        setCursor: [
          (u) => {
            if (u.cursor.event) {
              this.legend.read(this.trials.map((_, i) => text(u, panel, i, u.cursor.idx)));
            }
          },
        ],
      },
    };
  }

  private color(i: number): { color: string; dash: number[] } {
    const target = this.targets[Number(this.target.value)]?.target ?? "";
    return colors.trial(target, i, this.trials.length);
  }

  private line(t: TrialSeries, i: number): uPlot.Series {
    const { color, dash } = this.color(i);
    const show = !this.legend.hides(name(t));
    return { label: name(t), stroke: color, dash, width: 1.75, spanGaps: true, show,
      points: { show: false } };
  }

  // mark draws where trials became steady and, where they are few, the levels that were found.
  private mark(u: uPlot): void {
    const shown = this.trials.filter((t) => !this.legend.hides(name(t)));
    const c = u.ctx;
    const px = devicePixelRatio;
    c.save();
    this.trials.forEach((t, i) => {
      if (!t.warmup || !shown.includes(t)) {
        return;
      }
      c.strokeStyle = c.fillStyle = this.color(i).color;
      if (shown.length <= levelled) {
        t.warmup.levels.forEach((l) => level(u, l.from, l.to, l.perS, px));
      }
      if (t.warmup.steady !== null) {
        triangle(c, u.valToPos(t.warmup.steady, "x", true), u.bbox.top, px);
      }
    });
    c.restore();
  }

  private say(at: number): string {
    const x = this.plots[0]?.data[0][at];
    if (x === undefined) {
      return "";
    }
    const words = this.trials.flatMap((t, i) => {
      const said = this.plots.flatMap((u, k) => {
        const found = u.data[0].indexOf(x);
        const panel = panels.filter((p) => join(p, this.trials))[k];
        const value = panel ? text(u, panel, i, found) : null;
        return value ? [value] : [];
      });
      const shown = said.length > 0 && !this.legend.hides(name(t));
      return shown ? [`${name(t)}: ${said.join(", ")}`] : [];
    });
    return `${x} s${x <= 0 ? ", warm-up" : ""}; ${words.join("; ")}`;
  }
}

function name(t: TrialSeries): string {
  const marks: Record<string, string> = { VALID: "", SUSPECT: " (with findings)" };
  return `${t.repeat} ${t.block}` + (marks[t.verdict] ?? ` (${t.verdict})`);
}

// begin is when the first interval of a trial's warm-up began; 0 without one.
function begin(t: TrialSeries): number {
  const [first, second] = t.warmup?.seconds ?? [];
  return first === undefined ? 0 : 2 * first - (second ?? 0);
}

function text(u: uPlot, panel: Panel, i: number, at: number | null | undefined): string | null {
  const y = at === null || at === undefined ? null : u.data[i + 1]?.[at];
  return y === null || y === undefined ? null : panel.print(y);
}

// shade darkens what lies before the window; the first panel says what it is.
function shade(u: uPlot, start: number, labelled: boolean): void {
  if (start >= 0) {
    return;
  }
  const c = u.ctx;
  const px = devicePixelRatio;
  const [from, to] = [u.valToPos(start, "x", true), u.valToPos(0, "x", true)];
  c.save();
  c.fillStyle = colors.shade();
  c.fillRect(from, u.bbox.top, to - from, u.bbox.height);
  if (labelled) {
    c.fillStyle = colors.muted();
    c.font = font.replace("12px", `${12 * px}px`);
    c.textBaseline = "bottom";
    c.textAlign = "left";
    c.fillText("warm-up", from + 6 * px, u.bbox.top + u.bbox.height - 5 * px);
  }
  c.restore();
}

function level(u: uPlot, from: number, to: number, perS: number, px: number): void {
  const y = u.valToPos(perS, "y", true);
  const [a, b] = [u.valToPos(from, "x", true), u.valToPos(to, "x", true)];
  u.ctx.lineWidth = px;
  u.ctx.setLineDash([2 * px, 2 * px]);
  u.ctx.beginPath();
  u.ctx.moveTo(a, y);
  u.ctx.lineTo(b, y);
  u.ctx.moveTo(b, y - 6 * px);
  u.ctx.lineTo(b, y + 6 * px);
  u.ctx.stroke();
  u.ctx.setLineDash([]);
}

function triangle(c: CanvasRenderingContext2D, x: number, y: number, px: number): void {
  c.beginPath();
  c.moveTo(x - 5 * px, y);
  c.lineTo(x + 5 * px, y);
  c.lineTo(x, y + 8 * px);
  c.fill();
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
