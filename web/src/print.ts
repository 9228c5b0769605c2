// Print: in ink on white whatever the theme, with everything opened but the trials, whose many
// pages nobody asked for.

import { unfold } from "./fold";

export function printing(draw: () => void): void {
  const root = document.documentElement;
  let theme: string | undefined;
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    theme = root.dataset["theme"];
    root.dataset["theme"] = "light";
    root.classList.add("printing"); // as wide as A4, so that plots are drawn for paper
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open], .trial)")];
    opened.forEach((d) => {
      unfold(d);
      d.open = true;
    });
    draw();
  });
  addEventListener("afterprint", () => {
    opened.forEach((d) => (d.open = false));
    root.classList.remove("printing");
    if (theme) {
      root.dataset["theme"] = theme;
    } else {
      delete root.dataset["theme"];
    }
    draw();
  });
}
