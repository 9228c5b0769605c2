// What a reader takes from a figure: a link to it, and a picture. A figure of rows becomes an SVG,
// one that is drawn on canvases a PNG.

import * as colors from "./colors";
import { font } from "./plot";

// saving adds a link and a button to each figure that has a name.
export function saving(root: ParentNode = document): void {
  for (const figure of root.querySelectorAll<HTMLElement>(".figure[id]")) {
    if (!figure.querySelector(":scope > table.strip, :scope > .plot")) {
      continue; // it only groups others
    }
    const title = figure.querySelector("h2, h3, h4")?.textContent?.trim() ?? figure.id;
    const tools = document.createElement("p");
    tools.className = "tools";
    const link = document.createElement("a");
    link.href = "#" + figure.id;
    link.textContent = "Link";
    link.setAttribute("aria-label", "Link to this figure: " + title);
    tools.append(link);
    const strip = figure.querySelector<HTMLTableElement>(":scope > table.strip");
    if (strip) {
      tools.append(button("Save as SVG", title, () => {
        const text = new XMLSerializer().serializeToString(picture(strip, title));
        offer(new Blob([text], { type: "image/svg+xml" }), figure.id + ".svg");
      }));
    } else if (figure.querySelector(":scope > .plot")) {
      tools.append(button("Save as PNG", title, () => {
        photograph(figure, title)?.toBlob((b) => b && offer(b, figure.id + ".png"));
      }));
    }
    figure.append(tools);
  }
}

function button(text: string, title: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.setAttribute("aria-label", `${text}: ${title}`);
  made.addEventListener("click", act);
  return made;
}

function offer(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const space = "http://www.w3.org/2000/svg";
const margin = 16;

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, String(value));
  }
  return made;
}

// drawn are the properties of shapes and texts that the page's style sheet sets.
const drawn = ["fill", "stroke", "stroke-width", "opacity", "font-size"];

// picture is a strip figure as a picture of its own, as it is on the screen.
export function picture(table: HTMLTableElement, title: string): SVGElement {
  const box = table.getBoundingClientRect();
  const top = 2 * margin + 16;
  const [width, height] = [box.width + 2 * margin, box.height + top + margin];
  const svg = element("svg", { xmlns: space, width, height, viewBox: `0 0 ${width} ${height}` });
  svg.setAttribute("font-family", font.replace(/^\S+ /, ""));
  svg.append(element("rect", { width, height, fill: colors.paper() }));
  svg.append(write(title, margin, margin + 14, "start", 15, colors.ink(), 600));
  const place = (r: DOMRect) => ({ x: r.x - box.x + margin, y: r.y - box.y + top });
  for (const part of table.querySelectorAll<SVGSVGElement>("td.drawn > svg")) {
    const at = part.getBoundingClientRect();
    const copy = part.cloneNode(true) as SVGSVGElement;
    const { x, y } = place(at);
    for (const [key, value] of Object.entries({ x, y, width: at.width, height: at.height })) {
      copy.setAttribute(key, String(value));
    }
    copy.setAttribute("overflow", "visible");
    styled(part, copy);
    svg.append(copy);
  }
  for (const cell of table.querySelectorAll<HTMLElement>("th, td:not(.drawn)")) {
    texts(cell).forEach(({ text, at, of }) => {
      const style = getComputedStyle(of);
      const right = style.textAlign === "right";
      const { x, y } = place(at);
      const size = parseFloat(style.fontSize);
      svg.append(write(text, right ? x + at.width : x, y + at.height / 2 + size * 0.35,
        right ? "end" : "start", size, style.color, Number(style.fontWeight)));
    });
  }
  return svg;
}

// styled writes what style sheets say into a copy's attributes.
function styled(from: Element, to: Element): void {
  const copies = to.querySelectorAll("*");
  from.querySelectorAll("*").forEach((shape, i) => {
    const style = getComputedStyle(shape);
    for (const name of drawn) {
      copies[i]?.setAttribute(name, style.getPropertyValue(name));
    }
  });
}

// texts are the lines of a cell, each where it stands.
function texts(cell: HTMLElement): { text: string; at: DOMRect; of: HTMLElement }[] {
  const spans = [...cell.querySelectorAll<HTMLElement>(".range")];
  const range = document.createRange();
  const own = [...cell.childNodes].filter((n) => !spans.includes(n as HTMLElement));
  const [first, last] = [own[0], own[own.length - 1]];
  const found = spans.map((of) => {
    range.selectNodeContents(of);
    return { text: of.textContent?.trim() ?? "", at: range.getBoundingClientRect(), of };
  });
  if (first && last) {
    range.setStartBefore(first);
    range.setEndAfter(last);
    const text = own.map((n) => n.textContent ?? "").join("").trim();
    found.unshift({ text, at: range.getBoundingClientRect(), of: cell });
  }
  return found.filter((f) => f.text !== "");
}

function write(text: string, x: number, y: number, anchor: string, size: number, fill: string,
  weight: number): SVGElement {
  const made = element("text", {
    x, y, fill, "text-anchor": anchor, "font-size": size, "font-weight": weight });
  made.textContent = text;
  return made;
}

// photograph lays the canvases of a figure on one, with its title, what is chosen and its keys.
export function photograph(figure: HTMLElement, title: string): HTMLCanvasElement | null {
  const canvases = [...figure.querySelectorAll("canvas")];
  const box = figure.querySelector(".plot")?.getBoundingClientRect();
  const out = document.createElement("canvas");
  const c = out.getContext("2d");
  if (!box || canvases.length === 0 || !c) {
    return null;
  }
  const px = devicePixelRatio;
  const head = 52;
  const keys = [...figure.querySelectorAll<HTMLElement>(".key[aria-pressed='true']")];
  out.width = Math.ceil((box.width + 2 * margin) * px);
  out.height = Math.ceil((box.height + head + 24 * rows(keys) + margin) * px);
  c.scale(px, px);
  c.fillStyle = colors.paper();
  c.fillRect(0, 0, out.width, out.height);
  c.fillStyle = colors.ink();
  c.font = font.replace("12px", "600 15px");
  c.fillText(title, margin, 24);
  c.font = font;
  c.fillStyle = colors.muted();
  const chosen = [...figure.querySelectorAll("select")].map((s) => s.selectedOptions[0]?.text);
  c.fillText(chosen.filter(Boolean).join(" · "), margin, 42);
  for (const canvas of canvases) {
    const at = canvas.getBoundingClientRect();
    c.drawImage(canvas, at.x - box.x + margin, at.y - box.y + head, at.width, at.height);
  }
  keys.forEach((key, i) => {
    const x = margin + (i % perRow) * 200;
    const y = box.height + head + 16 + 24 * Math.floor(i / perRow);
    c.fillStyle = key.dataset["color"] ?? colors.ink();
    c.fillRect(x, y - 6, 18, 3);
    c.fillStyle = colors.ink();
    c.fillText(key.querySelector("span")?.textContent ?? "", x + 24, y);
  });
  return out;
}

const perRow = 5;

function rows(keys: HTMLElement[]): number {
  return Math.ceil(keys.length / perRow);
}
