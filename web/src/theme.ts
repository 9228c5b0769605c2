// Light and dark: the system's wish until the reader chooses, then the reader's.

export type Theme = "light" | "dark";

const key = "prony-theme";
const parameter = "theme";
const system = matchMedia("(prefers-color-scheme: dark)");

// A page opened from a file may be denied storage; then the choice lasts as long as the page.
function remembered(): Theme | null {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null;
  }
}

// given is the theme after the # of the address. The app passes it to reports, which a server shows
// without access to the app's storage.
function given(): Theme | null {
  const [name, value] = location.hash.slice(1).split("=", 2);
  return name === parameter && (value === "light" || value === "dark") ? value : null;
}

// follow passes the reader's choice on with links to reports, which have the attribute data-report.
export function follow(): void {
  const pass = (e: Event) => {
    const link = (e.target as Element).closest<HTMLAnchorElement>("a[data-report]");
    const chosen = document.documentElement.dataset["theme"];
    if (link && chosen) {
      link.hash = `${parameter}=${chosen}`;
    }
  };
  addEventListener("click", pass, true);
  addEventListener("auxclick", pass, true);
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(key, theme);
  } catch {
    // see remembered
  }
}

export function current(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") {
    return chosen;
  }
  return system.matches ? "dark" : "light";
}

// setUp wires the button and calls changed whenever the colours are others than before.
export function setUp(button: HTMLButtonElement | null, changed: () => void): void {
  if (!button) {
    return;
  }
  const show = () => {
    const other = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
    button.title = `Switch to the ${other} theme`;
  };
  const chosen = given() ?? remembered();
  if (chosen) {
    document.documentElement.dataset["theme"] = chosen;
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    const next: Theme = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset["theme"] = next;
    remember(next);
    show();
    changed();
  });
  system.addEventListener("change", () => {
    show();
    changed();
  });
  show();
}
