// The gate's answer to a comparison: is B worse than is allowed? It is judged as prony gate does.

import { Ask, Badge, Command, Trouble, useLoaded } from "../parts";
import { server } from "../source";
import type { Sides } from "../source";
import * as words from "../words";

// Gate is what docs/formats/compare-json.md has under "A gate".
export interface Gate {
  outcome: "pass" | "fail" | "inconclusive" | "insufficient data";
  checks: Check[] | null;
}

interface Check {
  scenario: string;
  target: string;
  load: string;
  metric: string;
  allowedChange: number; // the change that is allowed, as a share
  outcome: string;
  reason: string;
}

const grades = {
  pass: "valid", fail: "invalid", inconclusive: "suspect", "insufficient data": "suspect",
};

export function Judged({ sides, limit }: { sides: Sides; limit: string }) {
  const loaded = useLoaded(() => server!.gate(sides, limit), [JSON.stringify(sides), limit]);
  if (loaded && "error" in loaded) {
    return <Trouble text={loaded.error} />;
  }
  return (
    <section aria-label="The gate's answer">
      <h2>The gate's answer</h2>
      <Ask of={loaded}>{(g) => <Answer g={g} sides={sides} limit={limit} />}</Ask>
    </section>
  );
}

function Answer({ g, sides, limit }: { g: Gate; sides: Sides; limit: string }) {
  const text = words.quoted([
    "prony", "gate", "results/" + sides.a, "results/" + sides.b, "--max-regression", limit,
    ...(sides.control ? ["--control", sides.control] : []),
    ...(sides.allowMismatch ? ["--allow-mismatch"] : []),
  ]);
  return (
    <>
      <p role="status">
        <Badge grade={grades[g.outcome] ?? "none"} text={g.outcome} />
      </p>
      <ul class="reasons">
        {(g.checks ?? []).map((c) => (
          <li key={c.scenario + c.target + c.load + c.metric}>
            {`${c.target}, ${words.metric(c.load, c.metric)}: ${c.outcome}. ${c.reason}.`}
          </li>
        ))}
      </ul>
      <Command text={text} label="The same gate as a command" />
    </>
  );
}
