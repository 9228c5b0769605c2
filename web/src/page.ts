// The report's page. Everything that must be read stands in the HTML already; this draws the plots
// and lets the reader choose what they show.

import "./uplot-licence";
import { read, type Scenario } from "./data";
import { Dots } from "./dots";
import { Percentiles } from "./percentiles";
import { chooser } from "./plot";
import { Series } from "./series";
import * as theme from "./theme";

function part<T extends HTMLElement>(root: ParentNode, selector: string): T {
  const found = root.querySelector<T>(selector);
  if (!found) {
    throw new Error(`the page has no ${selector}`);
  }
  return found;
}

// plots wires one scenario's section and returns the way to draw it again.
function plots(root: HTMLElement, scenario: Scenario): () => void {
  const redraws = [throughput(root, scenario), latency(root, scenario), series(root, scenario)];
  return () => redraws.forEach((redraw) => redraw());
}

function throughput(root: HTMLElement, scenario: Scenario): () => void {
  const section = part(root, ".throughput");
  const dots = new Dots(part(section, ".plot"), part(section, ".reading"));
  const select = part<HTMLSelectElement>(section, "select");
  const draw = () => {
    const chosen = scenario.throughput[Number(select.value)];
    if (chosen) {
      dots.draw(chosen);
    }
  };
  const titles = scenario.throughput.map((t, i) => ({ value: String(i), text: t.title }));
  chooser(select, titles, draw);
  section.hidden = scenario.throughput.length === 0;
  return draw;
}

function latency(root: HTMLElement, scenario: Scenario): () => void {
  const section = part(root, ".latency");
  const curves = new Percentiles(part(section, ".plot"), part(section, ".keys"));
  const select = part<HTMLSelectElement>(section, "select");
  const draw = () => {
    const chosen = scenario.latency[Number(select.value)];
    if (chosen) {
      curves.draw(chosen);
    }
  };
  const titles = scenario.latency.map((l, i) => ({ value: String(i), text: l.title }));
  chooser(select, titles, draw);
  section.hidden = scenario.latency.length === 0;
  return draw;
}

function series(root: HTMLElement, scenario: Scenario): () => void {
  const section = part(root, ".series");
  const lines = new Series(part(section, ".plot"), part(section, ".keys"));
  const target = part<HTMLSelectElement>(section, "select.target");
  const load = part<HTMLSelectElement>(section, "select.load");
  const draw = () => {
    const chosen = scenario.series[Number(target.value)];
    if (chosen) {
      const trials = chosen.trials.filter((t) => t.load === load.value);
      lines.draw(chosen.target, trials);
    }
  };
  const targets = scenario.series.map((s, i) => ({ value: String(i), text: s.target }));
  chooser(target, targets, draw);
  const loads = new Set(scenario.series.flatMap((s) => s.trials.map((t) => t.load)));
  chooser(
    load,
    [...loads].map((l) => ({ value: l, text: l })),
    draw,
  );
  section.hidden = scenario.series.length === 0;
  return draw;
}

// columns lets the reader see the columns that most can do without; the page starts without them.
function columns(root: ParentNode): void {
  const button = root.querySelector<HTMLButtonElement>(".columns");
  if (!button) {
    return;
  }
  const table = part(root, ".comparison");
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

function start(): void {
  const page = read();
  document.querySelectorAll("main > section").forEach(columns);
  const redraws = page.scenarios.map((scenario, i) =>
    plots(part(document, `#scenario-${i + 1}`), scenario),
  );
  const redraw = () => redraws.forEach((again) => again());
  theme.setUp(part<HTMLButtonElement>(document, "#theme"), redraw);
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth !== width) {
      width = document.documentElement.clientWidth;
      redraw();
    }
  });
  redraw();
}

start();
