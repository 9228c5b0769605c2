// The way to a comparison's page, which prony compare --format html writes, too. A server makes one
// of any two runs, or of two targets of one run; a site has those that were written with it.

import { useEffect } from "preact/hooks";
import type { Comparison, Entry, Row, Written } from "../model";
import { Ask, Badge, Select, Trouble, useLoaded } from "../parts";
import { Refused } from "../refused";
import { replace, type Route, to } from "../route";
import { server, site, source } from "../source";
import * as words from "../words";
import { Judged } from "./gate";

export function Compare({ route }: { route: Route }) {
  const loaded = useLoaded(
    () => (server ? candidates(route.query) : source.runs({}, Infinity).then(({ runs }) => runs)),
    [route.query.get("a"), route.query.get("b")],
    true,
  );
  return (
    <>
      <h1 tabIndex={-1}>Compare</h1>
      <Ask of={loaded}>
        {(runs) =>
          server ? (
            <Choice runs={runs} query={route.query} />
          ) : (
            <Listed runs={runs} query={route.query} />
          )
        }
      </Ask>
    </>
  );
}

const offeredRuns = 200; // of all runs, and of those like the candidate

// candidates are the runs that a reader can choose of a server: the newest, the given ones, and the
// newest of the candidate's suite on its machine.
async function candidates(query: URLSearchParams): Promise<Entry[]> {
  const found = new Map<string, Entry>();
  const add = (runs: Entry[]) => runs.forEach((r) => found.set(r.id, r));
  add((await source.runs({}, offeredRuns)).runs);
  const [b] = cut(query.get("b") ?? "");
  for (const id of [b, cut(query.get("a") ?? "")[0]]) {
    if (id !== "" && !found.has(id)) {
      add(await source.run(id).then((run) => [run], () => [])); // the comparison says what is wrong
    }
  }
  const run = found.get(b);
  if (run) {
    const to = run.time.slice(0, 10);
    add((await source.runs({ suite: run.suite, machine: run.machine.key, to }, offeredRuns)).runs);
  }
  return [...found.values()].sort((x, y) => (x.time < y.time ? 1 : -1));
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
    allowMismatch: query.get("allowMismatch") ?? "",
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
        <Select label="Baseline" none="choose a run" value={runA} options={listed(near)}
          changed={(v) => set({ a: v })} />
        <Select label="Target of the baseline" none="all targets" value={targetA}
          options={targets(runA)}
          changed={(v) => set({ a: side(runA, v) })} />
        <Select label="Candidate" none="choose a run" value={runB}
          options={listed(() => false)} changed={(v) => set({ b: v })} />
        <Select label="Target of the candidate" none="all targets" value={targetB}
          options={targets(runB)}
          changed={(v) => set({ b: side(runB, v) })} />
        {runA !== runB && both.length > 0 && (
          <Select label="Divide by a control" none="none" value={given.control} options={both}
            changed={(v) => set({ control: v })} />
        )}
        <label class="check">
          <input type="checkbox" checked={given.allowMismatch !== ""}
            onChange={(e) => set({ allowMismatch: e.currentTarget.checked ? "1" : "" })} />
          Compare runs that were measured in different ways
        </label>
        <label>
          Gate: the candidate may be worse by
          <input type="text" value={given.limit} placeholder="5%, or p99=10%" autocomplete="off"
            onChange={(e) => set({ limit: e.currentTarget.value.replace(/\s/g, "") })} />
        </label>
      </form>
      {runA && runB ? (
        <Compared {...given} anyway={() => set({ allowMismatch: "1" })} />
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
  allowMismatch: string;
  limit: string;
}

interface Unlike {
  unlike: string; // why the server does not compare them
}

function Compared({ a, b, control, allowMismatch, limit, anyway }: Given & { anyway: () => void }) {
  const sides = { a, b, control, allowMismatch: allowMismatch !== "" };
  const loaded = useLoaded<Comparison | Unlike>(
    () =>
      server!.compare(sides).catch((error: unknown) => {
        if (error instanceof Refused && error.status === 409) {
          return { unlike: error.message };
        }
        throw error;
      }),
    [a, b, control, allowMismatch],
  );
  return (
    <Ask of={loaded}>
      {(c) =>
        "unlike" in c ? (
          <>
            <Trouble text={c.unlike} />
            <p class="doors">
              <button class="act" type="button" onClick={anyway}>Compare anyway</button>
            </p>
          </>
        ) : (
          <>
            <Mismatches of={c} />
            {limit && <Judged sides={sides} limit={limit} />}
            <Shown c={c} href={server!.comparison(sides, limit)} />
          </>
        )
      }
    </Ask>
  );
}

// Mismatches are above a comparison of runs that were measured in different ways.
function Mismatches({ of }: { of: Comparison }) {
  const all = of.mismatches ?? [];
  const lines = all.map((m) => `${m.aspect}: ${m.a} against ${m.b}`);
  const head = "Baseline and candidate were measured in different ways. A difference between " +
    "them may be one of the method:";
  return all.length > 0 ? <Trouble text={[head, ...lines].join("\n")} /> : null;
}

// Shown is what a comparison found, and the way to its page.
function Shown({ c, href }: { c: Comparison; href: string }) {
  const pairs = c.pairs ?? [];
  const alike = pairs.flatMap((p) => p.rows ?? [])
    .some((r) => r.outcome === "indistinguishable" || r.outcome === "equal");
  const changed = pairs.flatMap((p) =>
    (p.rows ?? [])
      .filter((r) => r.outcome === "better" || r.outcome === "worse")
      .map((r) => ({ r, name: pairs.length > 1 ? `${p.scenario}, ${p.b.target}: ` : "" })),
  );
  useEffect(() => words.titled(c.title), [c.title]);
  return (
    <div class="result">
      <h2>{c.title}</h2>
      {changed.length === 0 && (
        <p role="status">
          {alike ? "No significant difference." : "No metric could be compared."}
        </p>
      )}
      <ul class="reasons">
        {changed.map(({ r, name }) => (
          <li key={name + r.load + r.metric}>
            {name}
            {words.metric(r.load, r.metric)} {words.change(r.ratio?.center ?? null)}
            {interval(r)} <Badge grade={r.outcome} text={r.text} />
            {r.grade === "SUSPECT" && <> <Badge grade={r.grade} text={r.grade} /></>}
          </li>
        ))}
      </ul>
      {(c.warnings ?? []).length > 0 && (
        <p>{words.count((c.warnings ?? []).length, "warning")}, on the comparison's page</p>
      )}
      <p class="doors">
        <a class="act" href={href} data-report>Open the comparison</a>
      </p>
    </div>
  );
}

function interval({ ratio }: Row): string {
  if (!ratio || ratio.lo === null || ratio.hi === null) {
    return "";
  }
  return ` (${words.change(ratio.lo)} to ${words.change(ratio.hi)})`;
}

// Listed are the comparisons of a site, all or those of one run.
function Listed({ runs, query }: { runs: Entry[]; query: URLSearchParams }) {
  const loaded = useLoaded(() => site!.pairs(), []);
  return (
    <Ask of={loaded}>
      {(pairs) => <Pairs runs={runs} pairs={pairs} of={query.get("b") ?? ""} />}
    </Ask>
  );
}

const most = 50; // comparisons that are shown at a time

function Pairs({ runs, pairs, of }: { runs: Entry[]; pairs: Written[]; of: string }) {
  const known = new Map(runs.map((r) => [r.id, r]));
  const name = (id: string) => {
    const run = known.get(id);
    return run ? `${words.moment(run.time)} · ${run.suite}` : id;
  };
  const found = pairs.filter((p) => of === "" || p.a === of || p.b === of);
  const options = runs.map((r): [string, string] => [r.id, name(r.id)]);
  const kinds = { previous: "the run before it", baseline: "the baseline" };
  return (
    <>
      <form class="filters" aria-label="Which comparisons" onSubmit={(e) => e.preventDefault()}>
        <Select label="Run" none="all runs" value={of} options={options}
          changed={(b) => replace(to("compare", "", { b }))} />
      </form>
      <p class="lead" role="status">
        {words.count(found.length, "comparison")}
        {found.length > most && `, the first ${most} of them below: choose a run`}. On the command
        line, <code>prony compare A B</code> compares any two runs.
      </p>
      <ul class="cards">
        {found.slice(0, most).map((p) => (
          <li class="card" key={p.a + " " + p.b}>
            <h2>{name(p.b)}</h2>
            <p>
              against {kinds[p.kind]}: {name(p.a)}
            </p>
            {p.refused ? (
              <Trouble text={p.refused} />
            ) : (
              <p class="doors">
                <a class="act" href={site!.comparison(p)} data-report>Open the comparison</a>
              </p>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
