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

// reveal opens all details that an element is in, and returns the element.
export function reveal(id: string): Element | null {
  if (id && !document.getElementById(id)) {
    for (const folded of document.querySelectorAll("details > noscript")) {
      if (folded.textContent?.includes(`id="${id}"`) && folded.parentElement) {
        unfold(folded.parentElement);
      }
    }
  }
  const target = document.getElementById(id);
  for (let at = target?.closest("details"); at; at = at.parentElement?.closest("details")) {
    unfold(at);
    at.open = true;
  }
  return target;
}

// unfold builds the content of details now.
export function unfold(details: HTMLElement): void {
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
