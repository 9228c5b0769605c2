// table.Method.Differences: in what two methods are not alike.

import type { Difference } from "../model";
import type { Aspect } from "./numbers";

const noLoad = "not offered"; // the value of an aspect of a load that the other side does not have
const unknown = "unknown";

export function differences(
  a: Aspect[],
  b: Aspect[],
): { binding: Difference[]; told: Difference[] } {
  const out = { binding: [] as Difference[], told: [] as Difference[] };
  const names = [...new Set([...a, ...b].map((x) => x.name))];
  for (const name of names) {
    const [x, y] = [value(a, name), value(b, name)];
    if ((x.value === noLoad || y.value === noLoad) && !name.endsWith(" model")) {
      continue; // a load that only one has is told by its model alone
    }
    if (x.value === y.value) {
      continue;
    }
    const d = { aspect: name, a: x.value, b: y.value };
    // What one side's records do not tell, because they are older, cannot bind.
    const binds = (x.binding || y.binding) && x.value !== unknown && y.value !== unknown;
    (binds ? out.binding : out.told).push(d);
  }
  return out;
}

function value(of: Aspect[], name: string): { value: string; binding: boolean } {
  return of.find((a) => a.name === name) ?? { value: noLoad, binding: false };
}
