// A legend of buttons: each hides or shows a line, and says its value under the cursor. uPlot's own
// legend is a table that the keyboard cannot reach.

export interface Entry {
  name: string;
  color: string;
  dash: number[];
}

export class Legend {
  private readonly values: HTMLElement[] = [];

  constructor(
    private readonly box: HTMLElement,
    entries: Entry[],
    hidden: Set<string>,
    toggle: (index: number, show: boolean) => void,
  ) {
    box.replaceChildren();
    entries.forEach((entry, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "key";
      button.setAttribute("aria-pressed", String(!hidden.has(entry.name)));
      const name = document.createElement("span");
      name.textContent = entry.name;
      const value = document.createElement("span");
      value.className = "value";
      button.append(sample(entry), name, value);
      button.addEventListener("click", () => {
        const show = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(show));
        if (show) {
          hidden.delete(entry.name);
        } else {
          hidden.add(entry.name);
        }
        toggle(index, show);
      });
      this.values.push(value);
      box.append(button);
    });
  }

  // read shows what stands under the cursor; nulls clear it.
  read(texts: (string | null)[]): void {
    texts.forEach((text, i) => {
      const value = this.values[i];
      if (value) {
        value.textContent = text ?? "";
      }
    });
  }

  clear(): void {
    this.box.replaceChildren();
  }
}

const svg = "http://www.w3.org/2000/svg";

function sample(entry: Entry): SVGElement {
  const picture = document.createElementNS(svg, "svg");
  picture.setAttribute("width", "22");
  picture.setAttribute("height", "8");
  picture.setAttribute("aria-hidden", "true");
  const stroke = document.createElementNS(svg, "line");
  stroke.setAttribute("x2", "22");
  stroke.setAttribute("y1", "4");
  stroke.setAttribute("y2", "4");
  stroke.setAttribute("stroke", entry.color);
  stroke.setAttribute("stroke-width", "3");
  stroke.setAttribute("stroke-dasharray", entry.dash.join(" "));
  picture.append(stroke);
  return picture;
}
