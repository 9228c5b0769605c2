// What a comparison says in sentences.

import { rate } from "../../src/units";
import type { Comparison } from "../model";
import type { Pairing } from "./compare";
import { type Numbers, rows } from "./numbers";

const sameRates = 0.01; // open loads whose rates differ by less are offered the same

export function title(c: Comparison): string {
  const pairs = c.pairs ?? [];
  const names = new Set(
    pairs.map(({ a, b }) => b.target + (a.target !== b.target ? " against " + a.target : "")),
  );
  const what = names.size > 3 ? `${names.size} pairs of targets` : [...names].join(", ");
  const first = pairs[0];
  return c.paired || !first ? what : `${what}: run ${first.b.run} against run ${first.a.run}`;
}

// between is the time from one run's start to the other's.
function between(a: Numbers, b: Numbers): string {
  const hours = Math.abs(Date.parse(b.began) - Date.parse(a.began)) / 3.6e6;
  if (!Number.isFinite(hours) || a.scenarios.length === 0 || b.scenarios.length === 0) {
    return "an unknown time";
  }
  if (hours >= 48) {
    return `${even(hours / 24)} days`;
  }
  return hours >= 2 ? `${even(hours)} hours` : `${even(hours * 60)} minutes`;
}

// even rounds halves to the even neighbour, as Go prints them.
function even(x: number): number {
  const down = Math.floor(x);
  return x - down === 0.5 ? down + (down % 2) : Math.round(x);
}

// warn says what a reader must know before the first number.
export function warn(c: Comparison, a: Numbers, b: Numbers, pairings: Pairing[]): void {
  const said = new Set<string>();
  if (!c.paired) {
    said.add(
      `Nothing pairs these runs, ${between(a, b)} apart: what the machine did between them is ` +
        "inside every difference, and no interval shows it.",
    );
    controls(c, a, b).forEach((s) => said.add(s));
  }
  const pairs = c.pairs ?? [];
  for (const p of pairs) {
    for (const why of [...(p.a.excluded ?? []), ...(p.b.excluded ?? [])]) {
      said.add(`Not in all numbers: ${why}.`);
    }
  }
  // The control is no pair of its own; what is said of artifacts is of those that are.
  const alike = pairings
    .filter((p) => p.b.subject.target !== c.control)
    .filter(({ a: x, b: y }) => x.subject.artifact && x.ran === y.ran)
    .filter(({ a: x, b: y }) => x.subject.artifact === y.subject.artifact)
    .map((p) => p.b.subject.target);
  if (alike.length > 0) {
    said.add(
      `Both sides of ${[...new Set(alike)].join(", ")} are the same artifact: what differs is ` +
        "noise, or the machine.",
    );
  }
  for (const p of pairings) {
    rates(c, p).forEach((s) => said.add(s));
    for (const t of [p.a, p.b]) {
      t.told.forEach((m) => said.add(`${t.subject.target} ${m}.`));
    }
  }
  c.warnings = [...said];
}

function controls(c: Comparison, a: Numbers, b: Numbers): string[] {
  if (c.control) {
    return [
      `Ratios are divided by those of the control ${c.control}, which is the same artifact in ` +
        "both runs: what moved both of them is taken out.",
    ];
  }
  const offered = rows(a).filter(
    (name) =>
      a.artifacts[name] &&
      a.artifacts[name] === b.artifacts[name] &&
      (c.pairs ?? []).some((p) => p.b.target !== name),
  );
  return offered.length === 0
    ? []
    : [
        `Both runs hold the same artifact of ${offered.join(", ")}: with one as --control, what ` +
          "moved it is taken out of the others.",
      ];
}

// rates tells of open loads that were offered each side's own share of its own peak.
function rates(c: Comparison, p: Pairing): string[] {
  const shown = new Set((c.pairs ?? []).flatMap((x) => x.rows ?? []).map((r) => r.load));
  const names = [p.a.subject.target, p.b.subject.target];
  const who = names[0] === names[1] ? `both sides of ${names[0]}` : names.join(" and ");
  return p.a.shares
    .filter((l) => shown.has(l.load))
    .flatMap((l) => {
      const [x, y] = [l.rate, p.b.shares.find((o) => o.load === l.load)?.rate ?? NaN];
      if (!(Math.abs(y / x - 1) > sameRates)) {
        return [];
      }
      return [
        `${l.load}: ${who} were each offered ${l.rateOf.replace("%", " %")}, ${rate(x)}/s and ` +
          `${rate(y)}/s: latencies compare at equal strain, not at an equal rate.`,
      ];
    });
}
