// A legend of buttons: each hides or shows a line, and says its value under the cursor. uPlot's own
// legend is a table that the keyboard cannot reach.

export interface Entry {
  name: string;
  color: string;
  dash: number[];
}

// shown is how many lines are drawn until the reader asks for more: as many as have a hue or a dash
// that eyes keep apart.
const shown = 8;

export class Legend {
  private values: HTMLElement[] = [];
  private readonly hidden = new Set<string>();
  private known = "";

  constructor(
    private readonly box: HTMLElement,
    private readonly toggle: (index: number, show: boolean) => void,
  ) {}

  hides(name: string): boolean {
    return this.hidden.has(name);
  }

  // fill makes the buttons. Of other lines than before, the first few are shown.
  fill(entries: Entry[]): void {
    const names = entries.map((e) => e.name).join("\n");
    if (names !== this.known) {
      this.known = names;
      this.hidden.clear();
      if (entries.length > shown + 2) {
        entries.slice(shown).forEach((e) => this.hidden.add(e.name));
      }
    }
    this.values = [];
    const buttons = entries.map((entry, index) => this.button(entry, index));
    if (entries.length > 2) {
      buttons.push(this.all(entries, buttons.slice()));
    }
    this.box.replaceChildren(...buttons);
  }

  private button(entry: Entry, index: number): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "key";
    button.dataset["color"] = entry.color;
    button.setAttribute("aria-pressed", String(!this.hidden.has(entry.name)));
    const name = document.createElement("span");
    name.textContent = entry.name;
    const value = document.createElement("span");
    value.className = "value";
    button.append(sample(entry), name, value);
    button.addEventListener("click", () => {
      this.set(button, entry, index, button.getAttribute("aria-pressed") !== "true");
    });
    this.values.push(value);
    return button;
  }

  private all(entries: Entry[], buttons: HTMLButtonElement[]): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "every";
    button.textContent = "All or none";
    button.addEventListener("click", () => {
      const show = this.hidden.size > 0;
      entries.forEach((entry, i) => {
        const key = buttons[i];
        if (key) {
          this.set(key, entry, i, show);
        }
      });
    });
    return button;
  }

  private set(button: HTMLElement, entry: Entry, index: number, show: boolean): void {
    button.setAttribute("aria-pressed", String(show));
    if (show) {
      this.hidden.delete(entry.name);
    } else {
      this.hidden.add(entry.name);
    }
    this.toggle(index, show);
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
