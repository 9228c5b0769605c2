// What all plots share: axes in the page's type and colours, and the width of their box.

import uPlot from "uplot";
import * as colors from "./colors";

export const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

// narrow is where names move from beside the rows to above them.
export const narrow = 560;

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

// steps are 1, 2 and 5 times the powers of ten from lo to hi: the ticks of a logarithmic axis. An
// axis of more than three decades keeps only the powers.
export function steps(lo: number, hi: number): number[] {
  const out: number[] = [];
  if (!(lo > 0) || !(hi > lo)) {
    return out;
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

// describe says in words what a canvas shows; screen readers and tests have nothing else.
export function describe(plot: uPlot, label: string): void {
  plot.root.setAttribute("role", "img");
  plot.root.setAttribute("aria-label", label);
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
  }
  select.onchange = changed;
}
