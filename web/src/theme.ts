// Light and dark: the system's wish until the reader chooses, then the reader's.

export type Theme = "light" | "dark";

const key = "prony-theme";
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
  const chosen = remembered();
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
