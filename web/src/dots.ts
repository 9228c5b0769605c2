// Throughput: a row a target, a whisker for the interval, a large dot for the centre and a small
// one for each trial, coloured by tier.

import uPlot from "uplot";
import * as colors from "./colors";
import type { Throughput, ThroughputRow } from "./data";
import { axis, describe, font, narrow } from "./plot";
import * as units from "./units";

// Heights of a row whose name stands beside it or above it, and of the axis below.
const rowBeside = 40;
const rowAbove = 52;
const axisHeight = 54;

export class Dots {
  private plot: uPlot | null = null;

  constructor(
    private readonly box: HTMLElement,
    private readonly reading: HTMLElement,
  ) {}

  draw(t: Throughput): void {
    this.plot?.destroy();
    this.plot = null;
    this.reading.textContent = "";
    const width = this.box.clientWidth;
    if (t.rows.length === 0 || width === 0) {
      return;
    }
    this.plot = new uPlot(this.options(t, width), this.data(t), this.box);
    const best = t.rows[0];
    describe(
      this.plot,
      `Throughput at ${t.title}, ${t.rows.length} targets. ` +
        (best ? `${best.target} leads with ${best.text}.` : ""),
    );
  }

  private data(t: Throughput): uPlot.AlignedData {
    return [t.rows.map((_, i) => i), t.rows.map((r) => r.center)];
  }

  private options(t: Throughput, width: number): uPlot.Options {
    const beside = width >= narrow;
    const longest = Math.max(...t.rows.map((r) => r.target.length));
    const most = Math.max(...t.rows.flatMap((r) => [r.hi ?? r.center, ...values(r)]));
    const labels = beside ? Math.min(longest * 7 + 16, width * 0.3) : 4;
    return {
      width,
      height: t.rows.length * (beside ? rowBeside : rowAbove) + axisHeight,
      padding: [4, 104, 0, 0],
      legend: { show: false },
      cursor: { x: false, y: false, drag: { setScale: false, x: false, y: false } },
      scales: {
        x: { time: false, ori: 1, dir: -1, range: [-0.5, t.rows.length - 0.5] },
        y: { ori: 0, dir: 1, range: [0, most * 1.02] },
      },
      axes: [
        axis({
          side: 3,
          size: labels,
          splits: () => t.rows.map((_, i) => i),
          values: () => t.rows.map((r) => (beside ? r.target : "")),
          stroke: () => colors.ink(),
          grid: { show: false },
        }),
        axis({
          side: 2,
          scale: "y",
          size: 32,
          label: "requests/s",
          space: 70,
          values: (_, xs) => xs.map((x) => units.tick(units.rate(x))),
        }),
      ],
      series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(u) => paint(u, t.rows, beside)],
        setCursor: [(u) => this.read(u, t.rows)],
      },
    };
  }

  private read(u: uPlot, rows: ThroughputRow[]): void {
    const top = u.cursor.top ?? -1;
    const row = top < 0 ? undefined : rows[Math.round(u.posToVal(top, "x"))];
    if (!row) {
      this.reading.textContent = "";
      return;
    }
    const trials = row.trials.map((d) => d.text).join("  ");
    const range = row.range ? ` (${row.range})` : "";
    this.reading.textContent = `${row.target}: ${row.text}${range}; trials ${trials}`;
  }
}

function values(r: ThroughputRow): number[] {
  return r.trials.map((d) => d.value);
}

function paint(u: uPlot, rows: ThroughputRow[], beside: boolean): void {
  const c = u.ctx;
  const px = devicePixelRatio;
  const x = (value: number) => u.valToPos(value, "y", true);
  c.save();
  c.textBaseline = "middle";
  c.textAlign = "left";
  c.font = font.replace("12px", `${12 * px}px`);
  rows.forEach((r, i) => {
    const y = u.valToPos(i, "x", true) + (beside ? 0 : 8 * px);
    const color = colors.tier(r.tier);
    c.fillStyle = c.strokeStyle = color;
    if (r.lo !== null && r.hi !== null) {
      whisker(c, x(r.lo), x(r.hi), y, px);
    }
    // The trials stand a little lower than the centre, one beside the other, never on top of it.
    r.trials.forEach((d, k) => {
      const lower = y + (7 + 3 * (k % 2)) * px;
      dot(c, x(d.value), lower, 2.5 * px, d.verdict === "VALID");
    });
    dot(c, x(r.center), y, 5 * px, true);
    c.fillStyle = colors.ink();
    if (!beside) {
      c.fillText(r.target, u.bbox.left + 4 * px, y - 17 * px);
    }
    const edge = u.bbox.left + u.bbox.width + 12 * px;
    c.fillText(r.text, edge, y - 6 * px);
    c.fillStyle = colors.muted();
    c.fillText(r.tier > 0 ? `tier ${r.tier}` : "no tier", edge, y + 9 * px);
  });
  c.restore();
}

function whisker(
  c: CanvasRenderingContext2D,
  from: number,
  to: number,
  y: number,
  px: number,
): void {
  c.lineWidth = 1.5 * px;
  c.beginPath();
  c.moveTo(from, y);
  c.lineTo(to, y);
  for (const end of [from, to]) {
    c.moveTo(end, y - 5 * px);
    c.lineTo(end, y + 5 * px);
  }
  c.stroke();
}

// A hollow dot is a trial that is not VALID.
function dot(c: CanvasRenderingContext2D, x: number, y: number, r: number, full: boolean): void {
  c.beginPath();
  c.arc(x, y, r, 0, 2 * Math.PI);
  if (full) {
    c.fill();
  } else {
    c.lineWidth = r / 2;
    c.stroke();
  }
}
