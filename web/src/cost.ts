// What throughput costs: processor time a request, and memory, against throughput. Names stand at
// the dots, or at the end of a line from the dot if there is no room beside it. Crosses are the
// intervals of both values.

import uPlot from "uplot";
import * as colors from "./colors";
import type { Cost as Data, CostPoint, Range } from "./data";
import { axis, cursor, font, Keys, logarithmic, logAxis, narrow, part, type Plot } from "./plot";
import * as units from "./units";

const wide = 20;

interface Panel {
  label: string;
  of: (p: CostPoint) => number | null;
  range: (p: CostPoint) => Range | null;
}

const panels: Panel[] = [
  { label: "CPU, µs a request", of: (p) => p.cpuUs, range: (p) => p.cpuRange },
  { label: "resident memory, MiB", of: (p) => p.rssMiB, range: (p) => p.rssRange },
];

export class Cost implements Plot {
  private plots: uPlot[] = [];
  private readonly box: HTMLElement;
  private readonly reading: HTMLElement;
  private readonly points: CostPoint[];
  private readonly keys: Keys;

  constructor(section: HTMLElement, cost: Data) {
    this.box = part(section, ".plot");
    this.box.classList.add("pair");
    this.reading = part(section, ".reading");
    this.points = [...cost.points].sort((a, b) => a.perS - b.perS);
    this.keys = new Keys(this.box, this.reading, (i) => this.say(i));
  }

  draw(): void {
    this.plots.forEach((p) => p.destroy());
    this.plots = [];
    const whole = this.box.clientWidth;
    if (whole === 0) {
      return;
    }
    const width = whole < 2 * narrow - 200 ? whole : Math.floor((whole - 24) / 2);
    for (const panel of panels) {
      const values = this.points.map(panel.of);
      if (values.some((v) => v !== null)) {
        const data: uPlot.AlignedData = [this.points.map((p) => p.perS), values];
        this.plots.push(new uPlot(this.options(panel, width), data, this.box));
      }
    }
    this.keys.attach(this.plots);
  }

  private options(panel: Panel, width: number): uPlot.Options {
    const rates = this.points.flatMap((p) => [p.perS, ...(p.perSRange ?? [])]).filter((x) => x > 0);
    const costs = this.points.flatMap((p) => [panel.of(p) ?? NaN, ...(panel.range(p) ?? [])]);
    const known = costs.filter((x) => x > 0);
    const most = Math.max(...rates);
    const log = most / Math.min(...rates) > wide;
    const label = "throughput, requests/s" + (log ? ", logarithmic" : "");
    return {
      width,
      height: 340,
      padding: [16, 16, 0, 0],
      legend: { show: false },
      cursor: { ...cursor, sync: { key: "cost" } },
      scales: {
        x: log
          ? { ...logarithmic(1), range: [Math.min(...rates) / 1.6, most * 1.6] }
          : { time: false, range: [0, most * 1.1] },
        y: known.length > 0
          ? { ...logarithmic(1), range: [Math.min(...known) / 1.6, Math.max(...known) * 1.6] }
          : logarithmic(1.6),
      },
      axes: [
        log
          ? logAxis({ label, size: 32 }, units.plain)
          : axis({ label, size: 32, values: (_u, xs) => xs.map((x) => units.tick(units.rate(x))) }),
        logAxis({ label: panel.label + ", logarithmic", size: 50 }, units.plain),
      ],
      series: [{}, { paths: () => null, points: { show: false }, stroke: colors.ink() }],
      hooks: {
        draw: [(u) => paint(u, this.points, panel)],
        setCursor: [
          (u) => {
            if (u.cursor.event) {
              this.reading.textContent = this.say(u.cursor.idx ?? -1);
            }
          },
        ],
      },
    };
  }

  private say(at: number): string {
    const p = this.points[at];
    return p ? `${p.target}: ${p.text}` : "";
  }
}

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

function paint(u: uPlot, points: CostPoint[], panel: Panel): void {
  const c = u.ctx;
  const px = devicePixelRatio;
  c.save();
  c.font = font.replace("12px", `${12 * px}px`);
  c.textBaseline = "middle";
  c.textAlign = "left";
  const taken: Box[] = [];
  const at = points.flatMap((p) => {
    const y = panel.of(p);
    return y === null ? [] : [{ p, x: u.valToPos(p.perS, "x", true), y: u.valToPos(y, "y", true) }];
  });
  c.lineWidth = 1.5 * px;
  for (const { p, x, y } of at) {
    c.fillStyle = c.strokeStyle = colors.target(p.target).color;
    cross(u, p, panel, x, y);
    c.beginPath();
    c.arc(x, y, 5 * px, 0, 7);
    c.fill();
    taken.push({ x: x - 6 * px, y: y - 6 * px, w: 12 * px, h: 12 * px });
  }
  c.fillStyle = colors.ink();
  c.strokeStyle = colors.muted();
  c.lineWidth = px;
  for (const { p, x, y } of at) {
    const w = c.measureText(p.target).width;
    const near = room(u, taken, beside(x, y, w, px));
    const place = near ?? room(u, taken, around(x, y, w, px));
    if (place) {
      taken.push(place);
      c.fillText(p.target, place.x, place.y + place.h / 2);
    }
    if (place && !near) {
      line(c, x, y, Math.min(Math.max(x, place.x), place.x + w), place.y + place.h / 2);
    }
  }
  c.restore();
}

// cross draws the intervals of both values of a point.
function cross(u: uPlot, p: CostPoint, panel: Panel, x: number, y: number): void {
  const range = panel.range(p);
  if (p.perSRange) {
    const [from, to] = p.perSRange.map((v) => u.valToPos(v, "x", true)) as Range;
    line(u.ctx, from, y, to, y);
  }
  if (range) {
    const [from, to] = range.map((v) => u.valToPos(v, "y", true)) as Range;
    line(u.ctx, x, from, x, to);
  }
}

function line(c: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number): void {
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(toX, toY);
  c.stroke();
}

// beside are the places for a name next to its dot.
function beside(x: number, y: number, w: number, px: number): Box[] {
  const h = 14 * px;
  const off = 9 * px;
  return [
    { x: x + off, y: y - h / 2, w, h },
    { x: x - off - w, y: y - h / 2, w, h },
    { x: x - w / 2, y: y - off - h, w, h },
    { x: x - w / 2, y: y + off, w, h },
    { x: x + off, y: y + off / 2, w, h },
    { x: x - off - w, y: y - off / 2 - h, w, h },
  ];
}

// around are the places for a name at a distance from its dot, the nearest first.
function around(x: number, y: number, w: number, px: number): Box[] {
  const h = 14 * px;
  const out: Box[] = [];
  for (let far = 28; far <= 140; far += 16) {
    for (const [dx, dy] of [[0, -1], [0, 1], [1, -1], [-1, 1], [1, 1], [-1, -1]] as const) {
      out.push({ x: x + dx * far * px - w / 2, y: y + dy * far * px - h / 2, w, h });
    }
  }
  return out;
}

// room is the first of places that is within the plot and on nothing else; null: none is.
function room(u: uPlot, taken: Box[], places: Box[]): Box | null {
  const { left, top, width, height } = u.bbox;
  for (const box of places) {
    const right = box.x + box.w <= left + width;
    const inside = box.x >= left && right && box.y >= top && box.y + box.h <= top + height;
    if (inside && !taken.some((t) => overlap(t, box))) {
      return box;
    }
  }
  return null;
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
