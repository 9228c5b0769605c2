// Latency against load: a target's p99 and p50 at each open load, by the rate that was served.

import uPlot from "uplot";
import * as colors from "./colors";
import type { LoadLine, Loads as Data } from "./data";
import { Legend } from "./legend";
import { axis, cursor, Keys, logarithmic, logAxis, narrow, part, type Plot } from "./plot";
import * as units from "./units";

// wide is from which ratio of the largest rate to the smallest the axis is logarithmic.
const wide = 20;

export class Loads implements Plot {
  private plot: uPlot | null = null;
  private readonly box: HTMLElement;
  private readonly legend: Legend;
  private readonly keys: Keys;

  constructor(
    section: HTMLElement,
    private readonly loads: Data,
  ) {
    this.box = part(section, ".plot");
    this.legend = new Legend(part(section, ".keys"), (i, show) => {
      this.plot?.setSeries(2 * i + 1, { show });
      this.plot?.setSeries(2 * i + 2, { show });
    });
    this.keys = new Keys(this.box, part(section, ".reading"), (i) => this.say(i));
  }

  draw(): void {
    this.plot?.destroy();
    const width = this.box.clientWidth;
    if (width === 0) {
      return;
    }
    const lines = this.loads.targets;
    this.legend.fill(lines.map((t) => ({ name: t.target, ...colors.target(t.target) })));
    const data = uPlot.join(
      lines.map((t): uPlot.AlignedData => [
        t.points.map((p) => p.perS),
        t.points.map((p) => p.p99Ms),
        t.points.map((p) => p.p50Ms),
      ]),
    );
    this.plot = new uPlot(this.options(width), data, this.box);
    this.keys.attach([this.plot]);
  }

  private options(width: number): uPlot.Options {
    const lines = this.loads.targets;
    const rates = lines.flatMap((t) => [...t.points.map((p) => p.perS), t.peak ?? NaN]);
    const known = rates.filter((x) => x > 0);
    const most = Math.max(...known);
    const log = most / Math.min(...known) > wide;
    return {
      width,
      height: width < narrow ? 320 : 400,
      padding: [14, 24, 0, 0],
      legend: { show: false },
      cursor,
      scales: {
        x: log
          ? { ...logarithmic(1), range: [Math.min(...known) / 1.2, most * 1.2] }
          : { time: false, range: [0, most * 1.05] },
        y: logarithmic(1.3),
      },
      axes: [
        log
          ? logAxis({ label: "served, requests/s", size: 32 }, units.plain)
          : axis({
              label: "served, requests/s",
              size: 32,
              values: (_u, xs) => xs.map((x) => units.tick(units.rate(x))),
            }),
        logAxis({ label: "response time, ms", size: 50 }, units.plain),
      ],
      series: [{}, ...lines.flatMap((t) => this.lines(t))],
      hooks: {
        draw: [(u) => lines.forEach((t) => !this.legend.hides(t.target) && mark(u, t))],
        setCursor: [(u) => this.legend.read(lines.map((_, i) => text(u, i, u.cursor.idx)))],
      },
    };
  }

  private lines(t: LoadLine): uPlot.Series[] {
    const { color } = colors.target(t.target);
    const common = { stroke: color, spanGaps: true, show: !this.legend.hides(t.target) };
    return [
      { ...common, label: t.target, width: 2, points: { show: true, size: 7, fill: color } },
      { ...common, width: 1.5, dash: [5, 4], points: { show: true, size: 5 } },
    ];
  }

  private say(at: number): string {
    const u = this.plot;
    const x = u?.data[0][at];
    if (!u || x === undefined) {
      return "";
    }
    const words = this.loads.targets.flatMap((t, i) => {
      const said = text(u, i, at);
      return said && !this.legend.hides(t.target) ? [`${t.target} ${said}`] : [];
    });
    return `${units.rate(x)}/s: ${words.join(", ")}`;
  }
}

function text(u: uPlot, i: number, at: number | null | undefined): string | null {
  const [p99, p50] = [u.data[2 * i + 1]?.[at ?? -1], u.data[2 * i + 2]?.[at ?? -1]];
  const words: string[] = [];
  if (p99 !== null && p99 !== undefined) {
    words.push("p99 " + units.milliseconds(p99));
  }
  if (p50 !== null && p50 !== undefined) {
    words.push("p50 " + units.milliseconds(p50));
  }
  return words.length > 0 ? words.join(", ") : null;
}

// mark draws the intervals of p99, the peak, and a ring where the target gave way after.
function mark(u: uPlot, t: LoadLine): void {
  const c = u.ctx;
  const px = devicePixelRatio;
  c.save();
  c.strokeStyle = colors.target(t.target).color;
  c.lineWidth = 1.5 * px;
  for (const p of t.points) {
    if (p.p99Lo !== null && p.p99Hi !== null) {
      const x = u.valToPos(p.perS, "x", true);
      stroke(c, x, u.valToPos(p.p99Lo, "y", true), u.valToPos(p.p99Hi, "y", true));
    }
  }
  const last = t.points[t.points.length - 1];
  if (t.knee && last && last.p99Ms !== null) {
    c.beginPath();
    c.arc(u.valToPos(last.perS, "x", true), u.valToPos(last.p99Ms, "y", true), 9 * px, 0, 7);
    c.stroke();
  }
  if (t.peak !== null) {
    c.globalAlpha = 0.6;
    c.lineWidth = px;
    const x = u.valToPos(t.peak, "x", true);
    stroke(c, x, u.bbox.top, u.bbox.top + u.bbox.height);
  }
  c.restore();
}

function stroke(c: CanvasRenderingContext2D, x: number, from: number, to: number): void {
  c.beginPath();
  c.moveTo(x, from);
  c.lineTo(x, to);
  c.stroke();
}
