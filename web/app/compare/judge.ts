// What each row says, once all p values are corrected for their number.

import type { Comparison, Row } from "../model";
import type { Pairing } from "./compare";
import { holm, sees, type Tested } from "./stats";

const power = 0.8; // with which what is detectable would have been told from none

export function judge(c: Comparison, pairings: Pairing[]): void {
  const all = (c.pairs ?? []).flatMap((p) => p.rows ?? []);
  const tested = all.filter((r) => r.ratio !== null && r.ratio.lo !== null);
  c.tests = tested.length;
  const alpha = 1 - c.confidence;
  const corrected = holm(tested.map((r) => r.ratio?.p ?? 1));
  const known = new Map<string, number>();
  tested.forEach((row, i) => {
    row.pHolm = corrected[i] ?? null;
    const ratio = row.ratio as Tested;
    const key = `${ratio.n} ${Math.floor(ratio.free)}`;
    const found = known.get(key) ?? sees(ratio.n, ratio.free, alpha / c.tests, power);
    known.set(key, found);
    if (ratio.sdLog) {
      row.detectable = Math.expm1(found * ratio.sdLog);
    }
  });
  const words = meanings(pairings);
  all.forEach((row) => speak(row, alpha, words.get(row.metric)));
}

type Words = { up: string; down: string };

function meanings(pairings: Pairing[]): Map<string, Words> {
  const metrics = pairings.flatMap((p) => [...p.a.metrics, ...p.b.metrics]);
  return new Map(metrics.map((m) => [m.metric, { up: m.whenUp, down: m.whenDown }]));
}

function speak(r: Row, alpha: number, words?: Words): void {
  const [a, b] = [r.a.centre ?? NaN, r.b.centre ?? NaN];
  let change = b - a;
  if (r.a.withheld || r.b.withheld) {
    [r.outcome, r.word] = ["none", "no number"];
    return;
  }
  if (!r.ratio) {
    if (a === b) {
      [r.outcome, r.word] = ["equal", "the same"];
      return;
    }
  } else if (r.ratio.lo === null) {
    [r.outcome, r.word] = ["none", r.ratio.warning ?? ""];
    return;
  } else if ((r.pHolm ?? 1) > alpha) {
    [r.outcome, r.word] = ["alike", "cannot be told apart"];
    if (r.ratio.lo > 1 || (r.ratio.hi ?? 1) < 1) {
      r.word = "may be chance among so many measures";
    }
    return;
  } else {
    change = (r.ratio.centre ?? NaN) - 1;
  }
  const better = change > 0 === (r.better === "higher");
  [r.outcome, r.word] = better
    ? ["better", words?.up ?? "better"]
    : ["worse", words?.down ?? "worse"];
}
