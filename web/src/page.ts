// The report's page. Everything that must be read stands in the HTML already; this draws the plots
// that a cursor reads, and lets the reader choose what they show.

import "./page.css";
import "./print.css";
import { copying } from "./copy";
import * as colors from "./colors";
import { Cost } from "./cost";
import { type Page, read, type Scenario } from "./data";
import { Flame } from "./flame";
import { folding, reveal } from "./fold";
import { Loads } from "./loads";
import { Percentiles } from "./percentiles";
import type { Plot } from "./plot";
import { printing } from "./print";
import { saving } from "./save";
import { Series } from "./series";
import * as theme from "./theme";
import { home } from "./home";

// kinds are the figures by script, by the class of their section.
const kinds: [string, (section: HTMLElement, s: Scenario, page: Page) => Plot | null][] = [
  [".latency", (section, s) => new Percentiles(section, s.latency)],
  [".loads", (section, s) => s.loads && new Loads(section, s.loads)],
  [".series", (section, s) => new Series(section, s.series)],
  [".cost", (section, s) => s.cost && new Cost(section, s.cost)],
  [".flame", (section, s, page) => page.flames && new Flame(section, page.flames, number(page, s))],
];

function number(page: Page, s: Scenario): number {
  return page.scenarios.indexOf(s);
}

// Drawn draws a plot when it comes near the screen or the browser has nothing else to do, and again
// when all are to be drawn again: a page of forty targets is there at once.
class Drawn {
  private near = false;

  constructor(
    section: HTMLElement,
    private readonly plot: Plot,
  ) {
    const watch = new IntersectionObserver(
      (entries) => {
        if (entries.some((e) => e.isIntersecting)) {
          watch.disconnect();
          this.draw();
        }
      },
      { rootMargin: "600px" },
    );
    watch.observe(section);
  }

  draw(): void {
    this.near = true;
    this.plot.draw();
  }

  // idle draws what no one has scrolled to, so that a picture of the whole page has all figures.
  idle(): void {
    if (!this.near) {
      this.draw();
    }
  }

  again(): void {
    if (this.near) {
      this.plot.draw();
    }
  }
}

function plots(): Drawn[] {
  const out: Drawn[] = [];
  const page = read();
  colors.assign(page.targets);
  for (const [selector, make] of kinds) {
    for (const section of document.querySelectorAll<HTMLElement>(selector + "[data-scenario]")) {
      const scenario = page.scenarios[Number(section.dataset["scenario"]) - 1];
      const plot = scenario && make(section, scenario, page);
      if (plot) {
        out.push(new Drawn(section, plot));
      }
    }
  }
  return out;
}

// columns lets the reader see the columns that most can do without; the page starts without them.
function columns(button: HTMLButtonElement): void {
  const table = button.parentElement?.parentElement?.querySelector(".comparison");
  if (!table) {
    return;
  }
  const spans = [...table.querySelectorAll<HTMLTableCellElement>("[data-lean]")];
  const wide = spans.map((cell) => cell.colSpan);
  const show = (all: boolean) => {
    button.setAttribute("aria-pressed", String(all));
    table.classList.toggle("lean", !all);
    spans.forEach((cell, i) => {
      const lean = Number(cell.dataset["lean"]);
      cell.hidden = !all && lean === 0;
      cell.colSpan = (all ? wide[i] : lean) || 1;
    });
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-pressed") !== "true"));
  button.hidden = false;
  show(false);
}

// whenIdle does one step at a time, each when the browser has nothing else to do.
function whenIdle(steps: (() => void)[]): void {
  const later = window.requestIdleCallback ?? ((step: () => void) => setTimeout(step, 50));
  const next = () => {
    const step = steps.shift();
    if (step) {
      step();
      later(next);
    }
  };
  later(next);
}

// follow opens what a link within the page leads to.
function follow(): void {
  const open = () => {
    reveal(location.hash.slice(1))?.closest("details")?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
}

function start(): void {
  document.body.classList.add("scripts"); // so that plots have their height before they are drawn
  document.querySelectorAll<HTMLButtonElement>(".columns").forEach(columns);
  copying();
  folding();
  follow();
  const drawn = plots();
  const redraw = () => drawn.forEach((d) => d.again());
  theme.setUp(document.querySelector<HTMLButtonElement>("#theme"), redraw);
  whenIdle(drawn.map((d) => () => d.idle()));
  home();
  saving();
  printing(() => drawn.forEach((d) => d.draw()));
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth !== width) {
      width = document.documentElement.clientWidth;
      redraw();
    }
  });
}

start();
