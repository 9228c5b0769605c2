// Response time by percentile: a line a target, on the logit of the percentile, where the tail is
// as wide as the body and a logistic law would be straight.

import uPlot from "uplot";
import * as colors from "./colors";
import type { Latency } from "./data";
import { Legend } from "./legend";
import { axis, chooser, cursor, Keys, logarithmic, logAxis, narrow, part, type Plot } from "./plot";
import * as units from "./units";

const named = [0.5, 0.9, 0.99, 0.999, 0.9999];

// logit puts a quantile on the axis: ln(q/(1-q)), 0 at the median.
function logit(q: number): number {
  return Math.log(q / (1 - q));
}

export class Percentiles implements Plot {
  private plot: uPlot | null = null;
  private readonly box: HTMLElement;
  private readonly legend: Legend;
  private readonly keys: Keys;
  private readonly select: HTMLSelectElement;

  constructor(
    section: HTMLElement,
    private readonly loads: Latency[],
  ) {
    this.box = part(section, ".plot");
    this.legend = new Legend(part(section, ".keys"), (i, show) => {
      for (const k of [3 * i + 1, 3 * i + 2, 3 * i + 3]) {
        this.plot?.setSeries(k, { show });
      }
    });
    this.keys = new Keys(this.box, part(section, ".reading"), (i) => this.say(i));
    this.select = part(section, "select");
    const titles = loads.map((l, i) => ({ value: String(i), text: l.title }));
    chooser(this.select, titles, () => this.draw());
  }

  private chosen(): Latency | undefined {
    return this.loads[Number(this.select.value)];
  }

  draw(): void {
    this.plot?.destroy();
    const l = this.chosen();
    const width = this.box.clientWidth;
    if (!l || width === 0) {
      return;
    }
    this.legend.fill(l.lines.map((line) => ({ name: line.target, ...colors.target(line.target) })));
    const data: uPlot.AlignedData = [
      l.quantiles.map(logit),
      ...l.lines.flatMap((line) => [line.ms, line.hi, line.lo]),
    ];
    this.plot = new uPlot(this.options(l, width), data, this.box);
    this.keys.attach([this.plot]);
  }

  private options(l: Latency, width: number): uPlot.Options {
    const end = logit(l.quantiles[l.quantiles.length - 1] ?? 0.9999);
    const marks = named.filter((q) => logit(q) <= end + 1e-9);
    return {
      width,
      height: width < narrow ? 320 : 420,
      padding: [12, 24, 0, 0],
      legend: { show: false },
      cursor: { ...cursor, points: { size: 7, show: (u, i) => dotsOnLines(u, i) } },
      scales: { x: { time: false, range: [0, end] }, y: logarithmic(1.15) },
      axes: [
        axis({
          label: "percentile, logit scale",
          size: 32,
          splits: () => marks.map(logit),
          values: () => marks.map((q) => "p" + units.percentile(q)),
        }),
        logAxis({ label: "response time, ms", size: 50 }, units.plain),
      ],
      bands: l.lines.map((line, i) => ({
        series: [3 * i + 2, 3 * i + 3],
        fill: colors.faint(colors.target(line.target).color),
      })),
      series: [{}, ...l.lines.flatMap((line) => lines(line.target, this.legend))],
      hooks: { setCursor: [(u) => this.legend.read(this.texts(u.cursor.idx))] },
    };
  }

  private texts(at: number | null | undefined): (string | null)[] {
    const l = this.chosen();
    const q = l?.quantiles[at ?? -1];
    return (l?.lines ?? []).map((line) => {
      const ms = line.ms[at ?? -1];
      return ms === null || ms === undefined || q === undefined ? null : units.milliseconds(ms);
    });
  }

  private say(at: number): string {
    const l = this.chosen();
    const q = l?.quantiles[at];
    if (!l || q === undefined) {
      return "";
    }
    const texts = this.texts(at);
    const words = l.lines.flatMap((line, i) =>
      texts[i] && !this.legend.hides(line.target) ? [`${line.target} ${texts[i]}`] : [],
    );
    return `p${units.percentile(q)}: ${words.join(", ") || "too few requests"}`;
  }
}

// lines are a target's three series: the median and, without strokes, the interval's ends.
function lines(target: string, legend: Legend): uPlot.Series[] {
  const show = !legend.hides(target);
  const { color, dash } = colors.target(target);
  const none = { show, width: 0, stroke: "transparent", points: { show: false } };
  const median = { label: target, stroke: color, dash, width: 2, show, points: { show: false } };
  return [median, none, none];
}

function dotsOnLines(u: uPlot, i: number): HTMLElement {
  const dot = document.createElement("div");
  dot.className = "u-cursor-pt";
  const line = (i - 1) % 3 === 0;
  dot.style.width = dot.style.height = line ? "7px" : "0";
  const stroke = u.series[i]?.stroke;
  const color = typeof stroke === "function" ? String(stroke(u, i)) : "";
  dot.style.background = line ? color : "transparent";
  return dot;
}
