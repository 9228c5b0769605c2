// What throughput costs: processor time a request, and memory, against throughput. Names stand at
// the dots as far as there is room; the cursor and the table have all.

import uPlot from "uplot";
import * as colors from "./colors";
import type { Cost as Data, CostPoint } from "./data";
import { axis, cursor, font, Keys, logarithmic, logAxis, narrow, part, type Plot } from "./plot";
import * as units from "./units";

const wide = 20;

interface Panel {
  label: string;
  of: (p: CostPoint) => number | null;
}

const panels: Panel[] = [
  { label: "CPU, µs a request", of: (p) => p.cpuUs },
  { label: "resident memory, MiB", of: (p) => p.rssMiB },
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
    const rates = this.points.map((p) => p.perS);
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
        y: logarithmic(1.6),
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
  for (const { p, x, y } of at) {
    c.fillStyle = colors.target(p.target).color;
    c.beginPath();
    c.arc(x, y, 5 * px, 0, 7);
    c.fill();
    taken.push({ x: x - 6 * px, y: y - 6 * px, w: 12 * px, h: 12 * px });
  }
  c.fillStyle = colors.ink();
  for (const { p, x, y } of at) {
    const w = c.measureText(p.target).width;
    const place = room(u, taken, x, y, w, px);
    if (place) {
      taken.push(place);
      c.fillText(p.target, place.x, place.y + place.h / 2);
    }
  }
  c.restore();
}

// room is where a name fits beside its dot, within the plot and on nothing else; null: nowhere.
function room(u: uPlot, taken: Box[], x: number, y: number, w: number, px: number): Box | null {
  const h = 14 * px;
  const off = 9 * px;
  const places = [
    { x: x + off, y: y - h / 2 },
    { x: x - off - w, y: y - h / 2 },
    { x: x - w / 2, y: y - off - h },
    { x: x - w / 2, y: y + off },
    { x: x + off, y: y + off / 2 },
    { x: x - off - w, y: y - off / 2 - h },
  ];
  const { left, top, width, height } = u.bbox;
  for (const p of places) {
    const box = { ...p, w, h };
    const inside =
      box.x >= left && box.x + w <= left + width && box.y >= top && box.y + h <= top + height;
    if (inside && !taken.some((t) => overlap(t, box))) {
      return box;
    }
  }
  return null;
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
