// cut names what a page cuts off at its sides, on a screen of a width. At a width from which boxes
// of tables must not scroll, such boxes are cut off, too. Tests of pages in Go run it.
((width, whole) => {
  const name = (e) =>
    [e.tagName.toLowerCase(), ...e.classList].join(".") + (e.id ? "#" + e.id : "");
  const found = [];
  // What is for screen readers alone is a pixel wide; what a plot has inside is uPlot's.
  const apart = (e) => {
    for (let at = e; at && at !== document.body; at = at.parentElement) {
      const box = at.getBoundingClientRect();
      if (box.width <= 1 || box.height <= 1 || at.matches(".uplot, svg *")) {
        return true;
      }
    }
    return false;
  };
  const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || apart(e)) {
      continue;
    }
    const more = e.scrollWidth - e.clientWidth;
    const { overflowX } = getComputedStyle(e);
    if (more > 1 && (overflowX === "hidden" || overflowX === "clip")) {
      found.push(`${name(e)} hides ${more} px`);
    }
    if (more > 1 && whole && scrolls(e)) {
      found.push(`${name(e)} scrolls by ${more} px`);
    }
    const box = e.getBoundingClientRect();
    let at = e.parentElement;
    while (at && !scrolls(at)) {
      at = at.parentElement;
    }
    const out = Math.max(box.right - width, -box.left);
    if (!at && out > 1 && getComputedStyle(e).position !== "fixed") {
      found.push(`${name(e)} is ${Math.round(out)} px beyond the screen`);
    }
  }
  return found.slice(0, 8);
})
