// Changes of level that History found, by the run with which the new level begins.

import { useEffect, useState } from "preact/hooks";
import type { Shelf } from "./model";
import { to } from "./route";
import { source } from "./source";
import * as words from "./words";

export interface Mark {
  change: string; // such as "−6.66 %"
  text: string; // with what has changed
  worse: boolean;
  href: string; // its history
}

const newest = 24; // runs among which one under way is

export type Marks = Map<string, Mark[]>;

// useMarks reads the histories once the list is there. While a run is under way it reads none: to
// compute them takes processor time from what is measured.
export function useMarks(shelf: Shelf): Marks {
  const [marks, set] = useState<Marks>(new Map());
  const quiet = shelf.all > 0 && !shelf.reading && shelf.runs.every((r) => r.state !== "running");
  useEffect(() => {
    let wanted = true;
    if (quiet) {
      read().then(
        (found) => wanted && set(found),
        () => undefined, // the list is whole without them, and History says what is wrong
      );
    }
    return () => {
      wanted = false;
    };
  }, [quiet, shelf.all]);
  return marks;
}

async function read(): Promise<Marks> {
  const marks: Marks = new Map();
  const { runs } = await source.runs({}, newest);
  if (runs.some((r) => r.state === "running")) {
    return marks; // a filter hides it
  }
  for (const group of await source.groups()) {
    const { series } = await source.trend(group.key);
    for (const s of series ?? []) {
      for (const c of s.changes ?? []) {
        const what = `${s.target}: ${words.series(s)}`;
        const change = words.change(c.after / c.before);
        const text = `${what} ${change}`;
        const href = to("history", "", { key: group.key, target: s.target });
        marks.set(c.run, [...(marks.get(c.run) ?? []), { change, text, worse: c.worse, href }]);
      }
    }
  }
  return marks;
}
