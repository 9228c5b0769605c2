// What all plots share: axes in the page's type and colours, and a cursor that keys move.

import uPlot from "uplot";
import * as colors from "./colors";

export const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

// narrow is where plots get lower.
export const narrow = 560;

// Plot is one figure: it draws itself into its box, and again when width or colours change.
export interface Plot {
  draw(): void;
}

export function part<T extends HTMLElement>(root: ParentNode, selector: string): T {
  const found = root.querySelector<T>(selector);
  if (!found) {
    throw new Error(`the page has no ${selector}`);
  }
  return found;
}

export function axis(more: uPlot.Axis): uPlot.Axis {
  return {
    font,
    labelFont: font,
    labelSize: 18,
    stroke: () => colors.muted(),
    grid: { stroke: () => colors.rule(), width: 1 },
    ticks: { show: false },
    gap: 6,
    ...more,
  };
}

export const cursor: uPlot.Cursor = {
  y: false,
  drag: { setScale: false, x: false, y: false },
  points: { size: 7 },
};

// steps are 1, 2 and 5 times the powers of ten from lo to hi: the ticks of a logarithmic axis. An
// axis of more than three decades keeps only the powers.
export function steps(lo: number, hi: number): number[] {
  const out: number[] = [];
  if (!(lo > 0) || !(hi > lo)) {
    return out;
  }
  if (hi / lo < 4) {
    return even(lo, hi);
  }
  const fine = Math.log10(hi / lo) <= 3;
  for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++) {
    for (const m of fine ? [1, 2, 5] : [1]) {
      const x = m * 10 ** e;
      if (x >= lo && x <= hi) {
        out.push(x);
      }
    }
  }
  return out;
}

// even are round values of equal distance: a logarithmic axis of less than a decade has too few
// others.
function even(lo: number, hi: number): number[] {
  const rough = (hi - lo) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10);
  const out: number[] = [];
  for (let k = Math.ceil(lo / step); k * step <= hi; k++) {
    out.push(k * step);
  }
  return out;
}

// logarithmic is a scale with room at its ends; its axis keeps to steps.
export function logarithmic(room: number): uPlot.Scale {
  return { time: false, distr: 3, range: (_u, lo, hi) => [lo / room, hi * room] };
}

export function logAxis(more: uPlot.Axis, print: (value: number) => string): uPlot.Axis {
  return axis({
    splits: (_u, _i, lo, hi) => steps(lo, hi),
    filter: (_u, splits) => splits,
    values: (_u, xs) => xs.map(print),
    ...more,
  });
}

// chooser fills a select and shows it only when there is a choice.
export function chooser(
  select: HTMLSelectElement,
  options: { value: string; text: string }[],
  changed: () => void,
): void {
  select.replaceChildren(
    ...options.map(({ value, text }) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      return option;
    }),
  );
  const label = select.closest("label");
  if (label) {
    label.hidden = options.length < 2;
    const all = label.parentElement;
    if (all) {
      all.hidden = [...all.children].every((l) => (l as HTMLElement).hidden);
    }
  }
  select.onchange = changed;
}

// keys lets arrows, Home and End move the cursor of plots with one x, and has each place read out.
// The plots and what they say may change; the box stays.
export class Keys {
  private plots: uPlot[] = [];
  private at = -1;

  constructor(
    box: HTMLElement,
    private readonly reading: HTMLElement,
    private readonly say: (index: number) => string,
  ) {
    box.tabIndex = 0;
    box.setAttribute("aria-roledescription", "plot: left and right arrows read its values");
    box.addEventListener("keydown", (e) => this.press(e));
    box.addEventListener("blur", () => this.leave());
  }

  attach(plots: uPlot[]): void {
    this.plots = plots;
    this.at = -1;
    this.reading.textContent = "";
  }

  private press(e: KeyboardEvent): void {
    const xs = this.plots[0]?.data[0];
    if (!xs || xs.length === 0) {
      return;
    }
    const far = e.shiftKey ? 10 : 1;
    const to = {
      ArrowLeft: this.at < 0 ? xs.length - 1 : this.at - far,
      ArrowRight: this.at + far,
      Home: 0,
      End: xs.length - 1,
      Escape: -1,
    }[e.key];
    if (to === undefined) {
      return;
    }
    e.preventDefault();
    if (e.key === "Escape") {
      this.leave();
      return;
    }
    this.at = Math.min(Math.max(to, 0), xs.length - 1);
    for (const u of this.plots) {
      const left = u.valToPos(xs[this.at] ?? 0, "x");
      u.setCursor({ left, top: u.over.clientHeight / 2 });
    }
    this.reading.textContent = this.say(this.at);
  }

  private leave(): void {
    this.at = -1;
    this.reading.textContent = "";
    this.plots.forEach((u) => u.setCursor({ left: -10, top: -10 }));
  }
}
