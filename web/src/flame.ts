// Where the time goes: a flame graph, its root on top, of one profile or of the difference between
// two. It is drawn on a canvas, so that no name of a frame can be anything but text.

import * as colors from "./colors";
import type { Flames, Profile } from "./data";
import {
  type Box,
  changes,
  decode,
  difference,
  error,
  type Found,
  type Frame,
  hash,
  layout,
  origin,
  search,
  width,
} from "./frames";
import { chooser, font, part, type Plot } from "./plot";
import * as units from "./units";

const rowHigh = 20;
const highest = 560; // what is deeper is scrolled to
const thinnest = 0.5; // pixels
const wordy = 28; // pixels from which a frame has a name

// strongest is the change of a share that has the full color; weaker ones go by the root, so that
// a point is still seen.
const strongest = 0.1;

// sure is how many standard errors a change must have to be colored.
const sure = 2;

const named = 3; // frames that are named as having changed most

const kinds: Record<string, string> = {
  cpu: "CPU",
  alloc: "allocation",
  lock: "waiting for locks",
  offcpu: "off-CPU",
};

type Part = "target" | "kind" | "load" | "process";
const parts: Part[] = ["target", "kind", "load", "process"];

export class Flame implements Plot {
  private readonly profiles: Profile[];
  private readonly box: HTMLElement;
  private readonly canvas = document.createElement("canvas");
  private readonly room = document.createElement("div"); // as high as the whole graph
  private readonly tip: HTMLElement;
  private readonly reading: HTMLElement;
  private readonly selects: Record<Part, HTMLSelectElement>;
  private readonly against: HTMLSelectElement;
  private readonly find: HTMLInputElement;
  private readonly whole: HTMLButtonElement;
  private shown: Profile;
  private base: Profile | null = null;
  private root: Frame;
  private total = 1;
  private zoom: Frame;
  private rows: Box[][] = [];
  private found: Found = { frames: new Set(), a: 0, b: 0 };
  private at: Frame | null = null; // what the keyboard or the mouse is on
  private byKey = false;

  constructor(
    private readonly section: HTMLElement,
    private readonly flames: Flames,
    scenario: number,
  ) {
    this.profiles = flames.profiles.filter((p) => p.scenario === scenario);
    this.box = part(section, ".plot");
    this.tip = part(section, ".tip");
    this.reading = part(section, ".reading");
    this.against = part(section, "select.against");
    this.find = part(section, "input");
    this.whole = part(section, "button.whole");
    const of = (name: Part) => part<HTMLSelectElement>(section, "select." + name);
    this.selects = {
      target: of("target"),
      kind: of("kind"),
      load: of("load"),
      process: of("process"),
    };
    const first = this.profiles[0];
    if (!first) {
      throw new Error("a flame graph without a profile");
    }
    this.shown = first;
    this.base = flames.against ? (this.profiles[1] ?? null) : null;
    [this.root, this.zoom] = [decode(flames, first).root, decode(flames, first).root];
    this.room.append(this.canvas);
    this.box.append(this.room);
    this.listen();
    this.choose();
    part(section, ".choices").hidden = false;
  }

  private listen(): void {
    this.find.oninput = () => this.seek();
    this.whole.onclick = () => this.into(this.root);
    this.box.tabIndex = 0;
    this.box.setAttribute(
      "aria-roledescription",
      "flame graph: arrows move between frames, Enter makes one as wide as all, Escape goes back",
    );
    this.box.addEventListener("keydown", (e) => this.press(e));
    this.box.addEventListener("blur", () => this.leave());
    this.box.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("mousemove", (e) => this.point(e));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (e) => {
      const frame = this.under(e);
      if (frame) {
        this.into(frame);
        this.point(e);
      }
    });
  }

  // choose fills each select with what is there under the choices before it, and keeps what can be
  // kept of the reader's own.
  private choose(): void {
    const wanted = new Map(parts.map((name) => [name, this.selects[name].value]));
    let left = this.profiles;
    for (const name of parts) {
      const select = this.selects[name];
      const values = [...new Set(left.map((p) => p[name]))];
      const texts = values.map((value) => ({ value, text: label(name, value) }));
      chooser(select, texts, () => this.choose());
      const keep = wanted.get(name) ?? "";
      select.value = values.includes(keep) ? keep : (values[0] ?? "");
      left = left.filter((p) => p[name] === select.value);
    }
    this.shown = left[0] ?? this.shown;
    this.pair();
  }

  // pair offers what the profile can be compared with: others of the same kind.
  private pair(): void {
    const keep = this.base ? this.named(this.base) : "";
    const others = this.profiles.filter(
      (p) => p !== this.shown && p.kind === this.shown.kind && p.unit === this.shown.unit,
    );
    const options = others.map((p) => ({ value: this.named(p), text: this.named(p) }));
    const none = { value: "", text: "nothing" };
    const changed = () => {
      this.base = others.find((p) => this.named(p) === this.against.value) ?? null;
      this.load();
    };
    chooser(this.against, [none, ...options], changed);
    this.against.value = options.some((o) => o.value === keep) ? keep : "";
    part(this.section, ".choices").hidden = false; // the search is always there
    changed();
  }

  private named(p: Profile): string {
    return [p.target, p.process, "at " + p.load].filter((word) => word !== "").join(", ");
  }

  private load(): void {
    const { root, total } = decode(this.flames, this.shown);
    this.total = total;
    this.root = this.base ? difference(decode(this.flames, this.base).root, root) : root;
    this.zoom = this.root;
    this.box.scrollTop = 0;
    const kind = label("kind", this.shown.kind);
    part(this.section, ".shown").textContent = this.base
      ? `${this.named(this.shown)}, against ${this.named(this.base)}: ${kind}. ${this.moved()}`
      : `${this.named(this.shown)}: ${kind}, ${units.amount(total, this.shown.unit)} in all. ` +
        `${this.shown.about}.`;
    part(this.section, ".difference").hidden = this.base === null;
    part(this.section, ".single").hidden = this.base !== null;
    this.seek();
  }

  // moved says in words which functions themselves changed most.
  private moved(): string {
    const { samples: nA } = this.base ?? this.shown;
    const all = changes(this.root).filter((c) => {
      const e = error(c.a, c.b, nA, this.shown.samples);
      return Math.abs(c.b - c.a) > sure * (e ?? 0) && Math.abs(c.b - c.a) > this.flames.least;
    });
    const words = (sign: number) =>
      all
        .filter((c) => (c.b - c.a) * sign > 0)
        .sort((x, y) => (y.b - y.a - (x.b - x.a)) * sign)
        .slice(0, named)
        .map((c) => `${c.name} ${units.points(c.b - c.a)}`)
        .join(", ");
    const [grew, shrank] = [words(1), words(-1)];
    const known = this.error(0, 0) !== null;
    const doubt = known ? "" : " How many samples this rests on is not told.";
    if (!grew && !shrank) {
      return `No function itself changed${known ? " by more than sampling explains" : ""}.${doubt}`;
    }
    return `Grew itself: ${grew || "nothing"}. Shrank: ${shrank || "nothing"}.${doubt}`;
  }

  draw(): void {
    const wide = this.box.clientWidth;
    if (wide === 0) {
      return;
    }
    this.rows = layout(this.zoom, thinnest / wide);
    const high = this.rows.length * rowHigh;
    this.room.style.height = `${high}px`;
    const seen = Math.min(high, highest);
    this.box.style.height = `${seen}px`;
    const [w, px] = [this.box.clientWidth, devicePixelRatio]; // a scroll bar has taken its part
    [this.canvas.width, this.canvas.height] = [Math.round(w * px), Math.round(seen * px)];
    [this.canvas.style.width, this.canvas.style.height] = [`${w}px`, `${seen}px`];
    this.whole.hidden = this.zoom === this.root;
    this.paint();
  }

  private paint(): void {
    const c = this.canvas.getContext("2d");
    if (!c) {
      return;
    }
    const px = devicePixelRatio;
    c.setTransform(px, 0, 0, px, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    c.font = font;
    c.textBaseline = "middle";
    const from = Math.floor(this.box.scrollTop / rowHigh);
    const to = from + Math.ceil(highest / rowHigh) + 1;
    const tint = tints(this.base !== null, (f) => this.strength(f));
    for (let row = from; row < Math.min(to, this.rows.length); row++) {
      for (const box of this.rows[row] ?? []) {
        this.frame(c, box, row * rowHigh - this.box.scrollTop, tint);
      }
    }
    this.deeper(c);
  }

  // deeper says that there is more below, since many systems hide their scroll bars.
  private deeper(c: CanvasRenderingContext2D): void {
    const [wide, high] = [this.box.clientWidth, this.box.clientHeight];
    const more = this.rows.length - Math.round((this.box.scrollTop + high) / rowHigh);
    if (more <= 0) {
      return;
    }
    const veil = c.createLinearGradient(0, high - 2.5 * rowHigh, 0, high);
    veil.addColorStop(0, colors.paper() + "00");
    veil.addColorStop(0.6, colors.paper());
    c.fillStyle = veil;
    c.fillRect(0, high - 2.5 * rowHigh, wide, 2.5 * rowHigh);
    c.fillStyle = colors.muted();
    c.textAlign = "center";
    c.fillText(`▾ ${more} more rows: scroll`, wide / 2, high - rowHigh / 2);
    c.textAlign = "left";
  }

  private frame(
    c: CanvasRenderingContext2D,
    { frame, x, w }: Box,
    y: number,
    tint: (f: Frame) => string,
  ): void {
    const all = this.box.clientWidth;
    const [left, wide] = [x * all, Math.max(w * all - 1, thinnest)];
    const sought = this.found.frames.size > 0 || this.find.value.trim() !== "";
    const hit = this.found.frames.has(frame);
    const above = frame.depth < this.zoom.depth;
    c.globalAlpha = (sought && !hit) || above ? 0.45 : 1;
    c.fillStyle = hit ? colors.accent() : tint(frame);
    c.fillRect(left, y, wide, rowHigh - 1);
    if (wide >= wordy) {
      c.globalAlpha = above ? 0.75 : 1;
      c.fillStyle = hit ? colors.paper() : colors.ink();
      c.fillText(fit(c, frame.short, wide - 8), left + 4, y + rowHigh / 2);
    }
    c.globalAlpha = 1;
    if (frame === this.at) {
      c.strokeStyle = colors.ink();
      c.lineWidth = 2;
      c.strokeRect(left + 1, y + 1, Math.max(wide - 2, 1), rowHigh - 3);
    }
  }

  // strength is how much of the color of growth (positive) or shrinking a frame has.
  private strength(f: Frame): number {
    const delta = f.b - f.a;
    const e = this.error(f.a, f.b) ?? 0;
    if (Math.abs(delta) <= sure * e || Math.abs(delta) <= this.flames.least) {
      return 0;
    }
    return Math.sign(delta) * Math.sqrt(Math.min(Math.abs(delta) / strongest, 1));
  }

  private error(a: number, b: number): number | null {
    return error(a, b, this.base?.samples ?? -1, this.shown.samples);
  }

  private seek(): void {
    this.found = search(this.root, this.find.value);
    const text = this.find.value.trim();
    const n = this.found.frames.size;
    const frames = n === 1 ? "1 frame" : `${n} frames`;
    const share = units.percent(this.found.b);
    const was = this.base ? `, ${units.percent(this.found.a)} there` : "";
    part(this.section, ".found").textContent =
      text === "" ? "" : n === 0 ? "in no frame" : `holds ${share}${was}, in ${frames}`;
    this.draw();
  }

  private into(f: Frame): void {
    this.zoom = f;
    this.draw();
    this.box.scrollTop = Math.max((f.depth - 1) * rowHigh, 0);
    this.paint();
  }

  private under(e: MouseEvent): Frame | null {
    const row = Math.floor((e.offsetY + this.box.scrollTop) / rowHigh);
    const x = e.offsetX / this.box.clientWidth;
    const hit = this.rows[row]?.find((b) => x >= b.x && x < b.x + b.w);
    return hit?.frame ?? null;
  }

  private point(e: MouseEvent): void {
    this.byKey = false;
    const f = this.under(e);
    this.canvas.classList.toggle("over", f !== null);
    this.on(f);
    if (!f) {
      return;
    }
    const field = this.section.getBoundingClientRect();
    const { width: w, height: h } = this.tip.getBoundingClientRect();
    const x = e.clientX - field.left + 14;
    const below = e.clientY + 18 + h < innerHeight;
    const y = e.clientY - field.top + (below ? 18 : -h - 10);
    this.tip.style.left = `${Math.max(0, Math.min(x, field.width - w))}px`;
    this.tip.style.top = `${y}px`;
  }

  // on says all of a frame, in the line below for the keyboard and beside the mouse.
  private on(f: Frame | null): void {
    this.at = f;
    this.tip.hidden = f === null || this.byKey;
    this.reading.textContent = f ? `${f.name}: ${this.say(f).join("; ")}` : "";
    if (f) {
      const lines = [f.name, ...this.say(f)].map((text) => {
        const line = document.createElement("span");
        line.textContent = text;
        return line;
      });
      this.tip.replaceChildren(...lines);
    }
    this.paint();
  }

  private say(f: Frame): string[] {
    const of = (share: number) =>
      `${units.percent(share)}, ${units.amount(share * this.total, this.shown.unit)}`;
    if (!this.base) {
      return [`${of(f.b)} with what it calls`, `${of(f.selfB)} itself`];
    }
    const compared = (a: number, b: number, what: string) => {
      if (a === 0 && b === 0) {
        return `${what}: nothing in either`;
      }
      const e = this.error(a, b);
      const doubt = e === null ? "" : ` (sampling alone: ± ${units.points(sure * e).slice(1)})`;
      const share = `${units.percent(b)} here, ${units.percent(a)} there`;
      return `${what}: ${share}, ${units.points(b - a)}${doubt}`;
    };
    return [
      compared(f.a, f.b, "with what it calls"),
      compared(f.selfA, f.selfB, "itself"),
    ];
  }

  private leave(): void {
    this.byKey = false;
    this.on(null);
  }

  private press(e: KeyboardEvent): void {
    if (e.key === "Escape") {
      e.preventDefault();
      const out = this.zoom.parent;
      if (out) {
        this.into(this.root);
      } else {
        this.leave();
      }
      return;
    }
    const to = this.step(e.key);
    if (to === undefined) {
      return;
    }
    e.preventDefault();
    if (e.key === "Enter" || e.key === " ") {
      this.into(to);
    }
    this.byKey = true;
    this.reach(to.depth * rowHigh);
    this.on(to);
  }

  // reach scrolls to a row, with some of the next ones.
  private reach(top: number): void {
    const end = top + 3 * rowHigh - this.box.clientHeight;
    this.box.scrollTop = Math.max(Math.min(this.box.scrollTop, top), end);
  }

  // step is where a key leads: undefined for a key that leads nowhere.
  private step(key: string): Frame | undefined {
    const from = this.at ?? this.zoom;
    const row = this.rows[from.depth] ?? [];
    const at = row.findIndex((b) => b.frame === from);
    const drawn = new Set((this.rows[from.depth + 1] ?? []).map((b) => b.frame));
    const below = [...from.children].filter((c) => drawn.has(c));
    switch (key) {
      case "ArrowDown":
        return this.at ? (below.sort((x, y) => width(y) - width(x))[0] ?? from) : from;
      case "ArrowUp":
        return from.parent ?? from;
      case "ArrowRight":
        return row[at + 1]?.frame ?? from;
      case "ArrowLeft":
        return row[at - 1]?.frame ?? from;
      case "Home":
        return this.root;
      case "Enter":
      case " ":
        return from;
    }
    return undefined;
  }
}

function label(name: Part, value: string): string {
  if (name === "kind") {
    return kinds[value] ?? value;
  }
  return value || "the only one";
}

// tints colors frames: by where they are from, or by how they changed.
function tints(changed: boolean, strength: (f: Frame) => number): (f: Frame) => string {
  if (changed) {
    return (f) => colors.change(strength(f));
  }
  const known = new Map<string, string>();
  return (f) => {
    const from = f.parent && f.name !== "(small)" ? origin(f.name) : "";
    const color = known.get(from) ?? (from ? colors.flame(hash(from)) : colors.rule());
    known.set(from, color);
    return color;
  };
}

// fit cuts a name to a width, the cut marked.
function fit(c: CanvasRenderingContext2D, text: string, wide: number): string {
  const whole = c.measureText(text).width;
  if (whole <= wide) {
    return text;
  }
  let n = Math.floor((text.length * wide) / whole);
  while (n > 0 && c.measureText(text.slice(0, n) + "…").width > wide) {
    n--;
  }
  return n > 1 ? text.slice(0, n) + "…" : "";
}
