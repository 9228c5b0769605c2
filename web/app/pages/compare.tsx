// Any two runs, or two targets of one, held against each other: what prony compare prints.

import type { Comparison, Entry, Pair, Row, Subject } from "../model";
import { Ask, Badge, Box, Command, Facts, Select, useLoaded } from "../parts";
import { replace, type Route, to } from "../route";
import { server, source } from "../source";
import { around, Strip, type StripRow } from "../strip";
import * as words from "../words";
import { Judged } from "./gate";

export function Compare({ route }: { route: Route }) {
  const loaded = useLoaded(() => source.runs(true), []);
  return (
    <>
      <h1 tabIndex={-1}>Compare</h1>
      <Ask of={loaded}>{(shelf) => <Choice runs={shelf.runs} query={route.query} />}</Ask>
    </>
  );
}

// cut takes RUN:TARGET apart; identifiers of runs hold no colon.
function cut(side: string): [run: string, target: string] {
  const at = side.indexOf(":");
  return at < 0 ? [side, ""] : [side.slice(0, at), side.slice(at + 1)];
}

// alike are runs of one suite on one machine, which may be comparable.
function alike(a: Entry, b: Entry): boolean {
  return a.suite === b.suite && a.machine.key === b.machine.key;
}

// before is the run that a run is compared with unless somebody chooses another: the one like it
// that was measured last before it. The newest run is the first in the list.
function before(runs: Entry[], id: string): string {
  const at = runs.findIndex((r) => r.id === id);
  const run = runs[at];
  return run ? (runs.slice(at + 1).find((r) => alike(r, run))?.id ?? "") : "";
}

function Choice({ runs, query }: { runs: Entry[]; query: URLSearchParams }) {
  const b = query.get("b") ?? "";
  const given = {
    a: query.get("a") ?? before(runs, cut(b)[0]),
    b,
    control: query.get("control") ?? "",
    unlike: query.get("unlike") ?? "",
    limit: query.get("limit") ?? "",
  };
  const set = (more: Partial<typeof given>) =>
    replace(to("compare", "", { ...given, ...more }));
  const [runA, targetA] = cut(given.a);
  const [runB, targetB] = cut(given.b);
  const other = runs.find((r) => r.id === runB);
  const near = (r: Entry) => other !== undefined && alike(r, other); // they come first
  const listed = (first: (r: Entry) => boolean) =>
    [...runs.filter(first), ...runs.filter((r) => !first(r))].map((r): [string, string] => [
      r.id,
      `${words.moment(r.time)} · ${r.suite}`,
    ]);
  const targets = (id: string) =>
    (runs.find((r) => r.id === id)?.targets ?? []).map((t): [string, string] => [t, t]);
  const side = (run: string, target: string) => run + (target && ":" + target);
  const both = targets(runA).filter(([t]) => targets(runB).some(([x]) => x === t));
  return (
    <>
      <form class="filters" aria-label="What to compare" onSubmit={(e) => e.preventDefault()}>
        <Select label="A" none="choose a run" value={runA} options={listed(near)}
          changed={(v) => set({ a: v })} />
        <Select label="of it" none="all targets" value={targetA} options={targets(runA)}
          changed={(v) => set({ a: side(runA, v) })} />
        <Select label="B, against it" none="choose a run" value={runB}
          options={listed(() => false)} changed={(v) => set({ b: v })} />
        <Select label="of it" none="all targets" value={targetB} options={targets(runB)}
          changed={(v) => set({ b: side(runB, v) })} />
        {runA !== runB && both.length > 0 && (
          <Select label="Divide by a control" none="none" value={given.control} options={both}
            changed={(v) => set({ control: v })} />
        )}
        <label class="check">
          <input type="checkbox" checked={given.unlike !== ""}
            onChange={(e) => set({ unlike: e.currentTarget.checked ? "1" : "" })} />
          even what was not measured in the same way
        </label>
        {server && (
          <label>
            Gate: B may be worse by
            <input type="text" value={given.limit} placeholder="5%, or p99=10%" autocomplete="off"
              onChange={(e) => set({ limit: e.currentTarget.value.replace(/\s/g, "") })} />
          </label>
        )}
      </form>
      {runA && runB ? (
        <Compared {...given} />
      ) : (
        <p class="lead">
          Choose two runs, or one run twice with two of its targets. Targets of one run are paired
          within its blocks; nothing pairs two runs.
        </p>
      )}
    </>
  );
}

interface Given {
  a: string;
  b: string;
  control: string;
  unlike: string;
  limit: string;
}

function Compared({ a, b, control, unlike, limit }: Given) {
  const sides = { a, b, control, unlike: unlike !== "" };
  const loaded = useLoaded(() => source.compare(sides), [a, b, control, unlike]);
  return (
    <>
      {server && limit && <Judged sides={sides} limit={limit} />}
      <Ask of={loaded}>{(c) => <Shown c={c} />}</Ask>
    </>
  );
}

function Shown({ c }: { c: Comparison }) {
  return (
    <div class="result">
      <h2>{c.title}</h2>
      {(c.unlike ?? []).length > 0 && (
        <div class="banner" role="alert">
          <p>The two were not measured in the same way: what differs is in every number.</p>
          <Differences of={c.unlike ?? []} />
        </div>
      )}
      <Warnings of={c.warnings ?? []} />
      {(c.pairs ?? []).map((p) => (
        <PairShown key={p.scenario + p.a.target + p.b.target} c={c} p={p} />
      ))}
      <Closing c={c} />
    </div>
  );
}

const fewWarnings = 4;

// Warnings has the first ones open: the gravest, and what is of all numbers.
function Warnings({ of }: { of: string[] }) {
  const listed = (some: string[]) => (
    <ul class="reasons">
      {some.map((w) => (
        <li key={w}>{w}</li>
      ))}
    </ul>
  );
  const first = of.filter((w) => !w.startsWith("Not in all numbers"));
  const left = of.filter((w) => w.startsWith("Not in all numbers"));
  if (left.length <= fewWarnings) {
    return listed(of);
  }
  return (
    <>
      {listed(first)}
      <details class="data">
        <summary>{left.length} trials are not in all numbers</summary>
        {listed(left)}
      </details>
    </>
  );
}

function Differences({ of }: { of: { aspect: string; a: string; b: string }[] }) {
  return (
    <ul class="plain">
      {of.map((d) => (
        <li key={d.aspect}>
          {d.aspect}: {d.a} against {d.b}
        </li>
      ))}
    </ul>
  );
}

function interval(r: Row): string {
  const { lo, hi } = r.ratio ?? { lo: null, hi: null };
  if (lo === null || hi === null) {
    return "";
  }
  return words.wide(lo, hi) ? "unknown" : `${words.change(lo)} to ${words.change(hi)}`;
}

// by is B to A: their ratio, or that of exact values.
function by(r: Row): number | null {
  if (r.a.withheld || r.b.withheld) {
    return null;
  }
  if (r.ratio) {
    return r.ratio.centre;
  }
  return r.a.centre !== null && r.b.centre !== null ? r.b.centre / r.a.centre : null;
}

function PairShown({ c, p }: { c: Comparison; p: Pair }) {
  const rows = p.rows ?? [];
  const drawn: StripRow[] = rows
    .filter((r) => r.ratio !== null && r.ratio.centre !== null)
    .map((r) => ({ r, told: interval(r) !== "unknown" }))
    .map(({ r, told }) => ({
      name: words.metric(r.load, r.metric),
      centre: r.ratio?.centre ?? null,
      lo: told ? (r.ratio?.lo ?? null) : null,
      hi: told ? (r.ratio?.hi ?? null) : null,
      text: words.change(r.ratio?.centre ?? null),
      range: `${r.better} is better`,
      tone: r.outcome,
      dots: (r.blocks ?? []).map((b) => b.ratio),
    }));
  const against = p.a.target !== p.b.target ? ` against ${p.a.target}` : "";
  return (
    <section class="figure forest">
      <h3>
        {p.scenario}: {p.b.target}
        {against}
      </h3>
      {drawn.length > 0 && (
        <Strip caption="Ratios of B to A with their intervals" rows={drawn} axis={around(drawn)}
          head={["measure", "B over A, logarithmic; the line is no difference", "change"]} />
      )}
      <Box label="All measures">
        <table class="plain compared">
          <caption>All measures of {p.b.target}</caption>
          <thead>
            <tr>
              {["measure", "A", "B", "B to A", `${100 * c.confidence} % interval`, "p", "", "sees"]
                .map((h, i) => <th key={i} scope="col">{h || "B is"}</th>)}
            </tr>
          </thead>
          <tbody>{rows.map((r) => <Line key={r.load + r.metric} r={r} />)}</tbody>
        </table>
      </Box>
      <Withheld rows={rows} />
      <details class="data">
        <summary>The two sides</summary>
        <div class="sides">
          <Side name="A" of={p.a} />
          <Side name="B" of={p.b} />
        </div>
      </details>
    </section>
  );
}

// Withheld says why a side has no number.
function Withheld({ rows }: { rows: Row[] }) {
  const why = rows
    .flatMap((r) => [["A", r.a, r] as const, ["B", r.b, r] as const])
    .filter(([, v]) => v.withheld);
  if (why.length === 0) {
    return null;
  }
  return (
    <details class="data">
      <summary>Why {words.count(why.length, "number")} cannot be had</summary>
      <ul class="plain">
        {why.map(([side, v, r]) => (
          <li key={side + r.load + r.metric}>
            {side} has no {words.metric(r.load, r.metric)}: {v.withheld}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Line({ r }: { r: Row }) {
  const level = (v: Row["a"]) => words.amount(v.withheld ? null : (v.mean ?? v.centre), r.unit);
  return (
    <tr>
      <th scope="row">{words.metric(r.load, r.metric)}</th>
      <td>{level(r.a)}</td>
      <td>{level(r.b)}</td>
      <td>{words.change(by(r))}</td>
      <td>{interval(r) || words.absent}</td>
      <td>{words.probability(r.pHolm)}</td>
      <td><Badge grade={r.outcome} text={r.word} /></td>
      <td>{words.least(r.detectable)}</td>
    </tr>
  );
}

function Side({ name, of }: { name: string; of: Subject }) {
  const n = `VALID ${of.valid}, SUSPECT ${of.suspect}, INVALID ${of.invalid}, failed ${of.failed}`;
  return (
    <div>
      <h4>{name}</h4>
      <Facts
        of={[
          ["target", of.target],
          ["run", <a href={to("run", of.run)}>{of.run}</a>],
          ["suite", of.suite],
          ["commit", of.commit ?? ""],
          ["artifact", of.artifact ?? ""],
          ["machine", of.machine ?? ""],
          ["prony", of.prony ?? ""],
          ["blocks", String(of.blocks)],
          ["trials", n],
          ["method", of.method],
          ["left out", (of.excluded ?? []).join("; ")],
        ]}
      />
    </div>
  );
}

function Closing({ c }: { c: Comparison }) {
  const how = c.paired
    ? "paired within the blocks of one run; Student's t on logarithms"
    : "not paired: the sides come from different runs; Welch's t on logarithms";
  return (
    <>
      <h3>What the numbers are</h3>
      <p class="lead">
        A and B are geometric means where they have a ratio, and B to A is their ratio with its
        {" "}{100 * c.confidence} % interval ({how}). The unit is the trial, never the request.
        {c.tests > 1 && ` p is corrected for ${c.tests} measures (Holm).`} “Sees” is the least
        difference that so many blocks tell from none in 8 of 10 cases.
      </p>
      {(c.missing ?? []).length > 0 && (
        <p class="lead">Not compared: {(c.missing ?? []).join("; ")}.</p>
      )}
      {(c.told ?? []).length > 0 && (
        <details class="data">
          <summary>What else differs between the sides, and forbids nothing</summary>
          <Differences of={c.told ?? []} />
        </details>
      )}
      {(c.reproduce ?? []).map((line) => (
        <Command key={line} text={line} label="Command that reproduces a run" />
      ))}
    </>
  );
}
