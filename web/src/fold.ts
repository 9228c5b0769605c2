// A page of many trials has the content of closed details in noscript elements. With scripts, such
// an element is one text, which becomes markup when a reader opens its details. Without scripts,
// the browser reads it as markup at once.

import { copying } from "./copy";
import { saving } from "./save";

// folding builds the content of details when a reader opens them.
export function folding(): void {
  const toggled = (e: Event) => {
    if (e.target instanceof HTMLDetailsElement && e.target.open) {
      unfold(e.target);
    }
  };
  document.addEventListener("toggle", toggled, { capture: true }); // toggle does not bubble
}

// unfold builds the content of details now.
export function unfold(details: HTMLDetailsElement): void {
  const folded = details.querySelector(":scope > noscript");
  if (!folded) {
    return;
  }
  const built = document.createElement("template");
  built.innerHTML = folded.textContent ?? "";
  folded.replaceWith(built.content);
  copying(details);
  saving(details);
}
