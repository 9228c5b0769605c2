// What is drawn on a canvas is drawn again when colours or the width of the page change.

import { useEffect, useState } from "preact/hooks";

const wanted = new Set<() => void>();

// again has everything drawn again.
export function again(): void {
  wanted.forEach((draw) => draw());
}

let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth !== width) {
    width = document.documentElement.clientWidth;
    again();
  }
});

// useRedraw is a number that changes when a plot is to be drawn again.
export function useRedraw(): number {
  const [n, set] = useState(0);
  useEffect(() => {
    const draw = () => set((k) => k + 1);
    wanted.add(draw);
    return () => {
      wanted.delete(draw);
    };
  }, []);
  return n;
}
