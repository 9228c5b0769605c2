// How trials went over time: the warm-up, shaded, and the window with throughput and p99 per
// interval, and what the probe saw of processor and memory. All targets have one metric, each in a
// panel of its own; one target has all metrics. All panels have one cursor.

import uPlot from "uplot";
import * as colors from "./colors";
import type { TargetSeries, TrialSeries } from "./data";
import { Legend } from "./legend";
import { axis, chooser, cursor, font, Keys, part, type Plot } from "./plot";
import * as units from "./units";

interface Panel {
  name: string;
  label: string;
  of: (t: TrialSeries) => { seconds: number[]; values: (number | null)[] } | null;
  print: (value: number) => string;
  warm: boolean; // whether the warm-up has values for it
  open: boolean; // whether it says more of an open load than of a closed one
}

// Drawing is what one plot shows.
interface Drawing {
  panel: Panel;
  target: string;
  trials: TrialSeries[];
  plot: uPlot;
}

const panels: Panel[] = [
  {
    name: "throughput",
    label: "requests/s",
    of: (t) => ({
      seconds: [...(t.warmup?.seconds ?? []), ...t.seconds],
      values: [...(t.warmup?.perS ?? []), ...t.perS],
    }),
    print: (x) => units.rate(x) + "/s",
    warm: true,
    open: false,
  },
  {
    name: "p99",
    label: "p99, ms",
    of: (t) => (t.p99Ms.length > 0 ? { seconds: t.seconds, values: t.p99Ms } : null),
    print: (x) => "p99 " + units.milliseconds(x),
    warm: false,
    open: true,
  },
  {
    name: "CPU",
    label: "service CPU, cores",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.cores },
    print: (x) => x.toFixed(2) + " cores",
    warm: false,
    open: false,
  },
  {
    name: "memory",
    label: "memory, MiB",
    of: (t) => t.probe && { seconds: t.probe.seconds, values: t.probe.mib },
    print: (x) => x.toFixed(0) + " MiB",
    warm: false,
    open: false,
  },
];

const height = 190;

// Panels of all targets are small, and as many in a row as fit.
const small = { width: 320, height: 150, gap: 20 };

// levelled is up to how many trials levels are drawn: more would be a net.
const levelled = 3;

// saidTargets is how many targets a reading names.
const saidTargets = 8;

// seconds are the steps that people count time in.
const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600];

export class Series implements Plot {
  private drawings: Drawing[] = [];
  private readonly box: HTMLElement;
  private readonly reading: HTMLElement;
  private readonly legend: Legend;
  private readonly keys: Keys;
  private readonly target: HTMLSelectElement;
  private readonly metric: HTMLSelectElement;
  private readonly load: HTMLSelectElement;

  constructor(
    section: HTMLElement,
    private readonly targets: TargetSeries[],
  ) {
    this.box = part(section, ".plot");
    this.legend = new Legend(part(section, ".keys"), () => this.drawings.forEach((d) =>
      d.trials.forEach((t, i) => d.plot.setSeries(i + 1, { show: !this.hides(t) }))));
    this.reading = part(section, ".reading");
    this.keys = new Keys(this.box, this.reading, (i) => this.say(i));
    this.target = part(section, "select.target");
    this.metric = part(section, "select.metric");
    this.load = part(section, "select.load");
    const names = targets.map((s, i) => ({ value: String(i), text: s.target }));
    const all = targets.length > 1 ? [{ value: "", text: "all targets" }] : [];
    const loads = new Set(targets.flatMap((s) => s.trials.map((t) => t.load)));
    const drawn = panels.filter((p) => targets.some((s) => s.trials.some((t) => has(p, t))));
    chooser(this.target, [...all, ...names], () => this.draw());
    chooser(
      this.metric,
      drawn.map((p) => ({ value: p.name, text: p.name })),
      () => {
        this.load.value = this.firstLoad(this.panel());
        this.draw();
      },
    );
    chooser(
      this.load,
      [...loads].map((l) => ({ value: l, text: l })),
      () => this.draw(),
    );
  }

  private panel(): Panel | undefined {
    return panels.find((p) => p.name === this.metric.value);
  }

  // firstLoad is the load that a metric is shown for unless a reader chooses another one.
  private firstLoad(panel: Panel | undefined): string {
    const trials = this.targets.flatMap((s) => s.trials);
    return (trials.find((t) => t.open && panel?.open) ?? trials[0])?.load ?? "";
  }

  draw(): void {
    this.drawings.forEach((d) => d.plot.destroy());
    this.drawings = [];
    const width = this.box.clientWidth;
    const all = this.target.value === "";
    this.box.classList.toggle("grid", all);
    const label = this.metric.closest("label");
    if (label) {
      label.hidden = !all || this.metric.options.length < 2;
    }
    if (width === 0) {
      return;
    }
    const chosen = all ? this.targets : this.targets.slice(Number(this.target.value)).slice(0, 1);
    const groups = chosen.map((s) => ({
      target: s.target,
      trials: s.trials.filter((t) => t.load === this.load.value),
    }));
    this.fill(groups, all);
    const trials = groups.flatMap((g) => g.trials);
    const start = Math.min(0, ...trials.map((t) => begin(t)));
    const end = Math.max(
      1,
      ...trials.flatMap((t) => [...t.seconds.slice(-1), ...(t.probe?.seconds.slice(-1) ?? [])]),
    );
    const wide = all ? cell(width, groups.length) : width;
    for (const group of groups) {
      for (const panel of panels) {
        const data = all && panel !== this.panel() ? null : join(panel, group.trials);
        if (data) {
          const range: [number, number] = [panel.warm ? start : 0, end];
          const options = this.options({ panel, ...group }, wide, range, all);
          this.drawings.push({ panel, ...group, plot: new uPlot(options, data, this.box) });
        }
      }
    }
    this.keys.attach(this.drawings.map((d) => d.plot));
  }

  // fill makes a key for each trial of a target, or for each repeat of all targets.
  private fill(groups: { target: string; trials: TrialSeries[] }[], all: boolean): void {
    const [first] = groups;
    if (!all && first) {
      const n = first.trials.length;
      const { target } = first;
      this.legend.fill(first.trials.map((t, i) => ({ name: name(t),
        ...colors.trial(target, i, n) })));
      return;
    }
    const trials = groups.flatMap((g) => g.trials);
    const repeats = [...new Set(trials.map(repeat))].sort((a, b) =>
      a.localeCompare(b, "en", { numeric: true }));
    this.legend.fill(repeats.map((r, i) => ({ name: r, ...colors.gray(i, repeats.length) })));
  }

  private hides(t: TrialSeries): boolean {
    return this.legend.hides(this.target.value === "" ? repeat(t) : name(t));
  }

  private options(d: Omit<Drawing, "plot">, width: number, range: [number, number],
    all: boolean): uPlot.Options {
    const { panel, trials, target } = d;
    const draw = panel.warm ? [(u: uPlot) => this.mark(u, d)] : [];
    return {
      width,
      height: all ? small.height : height,
      padding: [all ? 22 : 12, 24, 0, 0],
      legend: { show: false },
      cursor: { ...cursor, sync: { key: "time" }, points: { size: 6 } },
      scales: {
        x: { time: false, range },
        y: { range: (_u, _lo, hi) => [0, (hi || 1) * 1.08] },
      },
      axes: [
        axis({ size: 26, incrs: seconds, values: (_u, xs) => xs.map((x) => `${x} s`) }),
        axis({
          ...(all ? {} : { label: panel.label }),
          size: 50,
          values: (_u, ys) => ys.map((y) => units.tick(units.rate(y))),
        }),
      ],
      series: [{}, ...trials.map((t, i) => this.line(t, colors.trial(target, i, trials.length)))],
      hooks: {
        drawClear: [(u) => shade(u, range[0], panel.warm)],
        draw: all ? [...draw, (u) => title(u, target)] : draw,
        setCursor: [(u) => this.point(u, panel, trials)],
      },
    };
  }

  // point reads out what the mouse points at.
  private point(u: uPlot, panel: Panel, trials: TrialSeries[]): void {
    if (!u.cursor.event) {
      return;
    }
    const at = u.cursor.idx;
    if (this.target.value !== "") {
      this.legend.read(trials.map((_, i) => text(u, panel, i, at)));
      return;
    }
    const x = typeof at === "number" ? u.data[0][at] : undefined;
    this.reading.textContent = x === undefined ? "" : this.sayAll(x);
  }

  private line(t: TrialSeries, { color, dash }: { color: string; dash: number[] }): uPlot.Series {
    const show = !this.hides(t);
    return { label: name(t), stroke: color, dash, width: 1.75, spanGaps: true, show,
      points: { show: false } };
  }

  // mark draws where trials became steady and, where they are few, the levels that were found.
  private mark(u: uPlot, { target, trials }: Omit<Drawing, "plot">): void {
    const shown = trials.filter((t) => !this.hides(t));
    const c = u.ctx;
    const px = devicePixelRatio;
    c.save();
    trials.forEach((t, i) => {
      if (!t.warmup || !shown.includes(t)) {
        return;
      }
      c.strokeStyle = c.fillStyle = colors.trial(target, i, trials.length).color;
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
    const x = this.drawings[0]?.plot.data[0][at];
    if (x === undefined) {
      return "";
    }
    if (this.target.value === "") {
      return this.sayAll(x);
    }
    const words = (this.drawings[0]?.trials ?? []).flatMap((t, i) => {
      const said = this.drawings.flatMap(({ panel, plot }) => {
        const value = text(plot, panel, i, plot.data[0].indexOf(x));
        return value ? [value] : [];
      });
      return said.length > 0 && !this.hides(t) ? [`${name(t)}: ${said.join(", ")}`] : [];
    });
    return `${instant(x)}; ${words.join("; ")}`;
  }

  // sayAll reads the lowest and the highest trial of each target at a time.
  private sayAll(x: number): string {
    const words = this.drawings.flatMap(({ panel, target, trials, plot }) => {
      const at = plot.data[0].indexOf(x);
      const values = trials.flatMap((t, i) => {
        const y = plot.data[i + 1]?.[at];
        return y === null || y === undefined || this.hides(t) ? [] : [y];
      });
      const [lo, hi] = [Math.min(...values), Math.max(...values)];
      const least = lo < hi ? panel.print(lo) + " to " : "";
      return values.length > 0 ? [`${target} ${least}${panel.print(hi)}`] : [];
    });
    const more = words.length > saidTargets ? [`${words.length - saidTargets} more`] : [];
    return `${instant(x)}; ${[...words.slice(0, saidTargets), ...more].join("; ")}`;
  }
}

// cell is the width of one of n small panels.
function cell(width: number, n: number): number {
  const fit = Math.max(1, Math.floor((width + small.gap) / (small.width + small.gap)));
  const columns = Math.min(fit, n);
  return Math.floor((width - small.gap * (columns - 1)) / columns);
}

function instant(x: number): string {
  return `${x} s${x <= 0 ? ", warm-up" : ""}`;
}

function repeat(t: TrialSeries): string {
  return `${t.repeat} ${t.block}`;
}

// title writes the name of a target over its panel.
function title(u: uPlot, target: string): void {
  const c = u.ctx;
  const px = devicePixelRatio;
  c.save();
  c.fillStyle = colors.target(target).color;
  c.fillRect(u.bbox.left, 4 * px, 10 * px, 10 * px);
  c.fillStyle = colors.ink();
  c.font = font.replace("12px", `600 ${12 * px}px`);
  c.textBaseline = "top";
  c.textAlign = "left";
  c.fillText(target, u.bbox.left + 16 * px, 3 * px);
  c.restore();
}

function name(t: TrialSeries): string {
  const marks: Record<string, string> = { VALID: "", SUSPECT: " (with findings)" };
  return repeat(t) + (marks[t.verdict] ?? ` (${t.verdict})`);
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

function has(panel: Panel, t: TrialSeries): boolean {
  return (panel.of(t)?.seconds.length ?? 0) > 0;
}

// join lays trials of different clocks on one time axis; nothing is interpolated.
function join(panel: Panel, trials: TrialSeries[]): uPlot.AlignedData | null {
  if (!trials.some((t) => has(panel, t))) {
    return null;
  }
  return uPlot.join(trials.map((t) => {
    const s = panel.of(t);
    return s ? [s.seconds, s.values] : [[], []];
  }));
}
