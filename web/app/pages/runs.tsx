// All runs, newest first: as cards with what each found as a small figure, or as a table.

import { useEffect, useState } from "preact/hooks";
import { type Filter, read } from "../filter";
import { type Mark, type Marks, useMarks } from "../marks";
import type { Choices, Entry, Left, Ranked, Reading, Shelf } from "../model";
import { Ask, Badge, Box, Select, useLoaded, useSettled } from "../parts";
import { replace, type Route, to } from "../route";
import { source } from "../source";
import { endOf, Strip, type StripRow } from "../strip";
import * as words from "../words";

const shownAtFirst = 24;
const readAgain = 2000; // milliseconds, while the server reads runs

export function Runs({ route }: { route: Route }) {
  const filter = read(route.query);
  const [count, setCount] = useState(shownAtFirst);
  const [again, setAgain] = useState(0);
  const table = route.query.get("view") === "table";
  const asked = useSettled(JSON.stringify(filter));
  const ask = () => source.runs(JSON.parse(asked) as Filter, count);
  const loaded = useLoaded(ask, [asked, count, again], true);
  const reading = loaded && "value" in loaded && loaded.value.reading !== undefined;
  useEffect(() => {
    if (!reading) {
      return;
    }
    const timer = setTimeout(() => setAgain(again + 1), readAgain);
    return () => clearTimeout(timer);
  }, [loaded]);
  return (
    <>
      <h1 tabIndex={-1}>Runs</h1>
      <Ask of={loaded}>
        {(shelf) => (
          <Listed shelf={shelf} filter={filter} table={table}
            more={() => setCount(count + 96)} />
        )}
      </Ask>
    </>
  );
}

interface ListedProps {
  shelf: Shelf;
  filter: Filter;
  table: boolean;
  more: () => void;
}

function Listed({ shelf, filter, table, more }: ListedProps) {
  const marks = useMarks(shelf);
  const shown = shelf.runs;
  const filtered = Object.keys(filter).length > 0;
  if (shelf.all === 0 && !shelf.reading && !shelf.left?.length) {
    return (
      <>
        <p class="lead">There are no runs yet. On the command line, start one with prony run.</p>
        {source.kind === "server" && (
          <p class="doors"><a class="act" href={to("new")}>Start the first run</a></p>
        )}
      </>
    );
  }
  const ends = endsOf(shown);
  const view = table ? "table" : "";
  return (
    <>
      <Filters shelf={shelf} filter={filter} view={view} />
      <p class="lead" role="status">
        {filtered ? `${shelf.total} of ${words.count(shelf.all, "run")}` : ""}
        {!filtered && words.count(shelf.all, "run") + ", the newest first"}
        {". "}
        <a href={to("runs", "", { ...filter, view: table ? "" : "table" })}>
          {table ? "Show as cards" : "Show as a table"}
        </a>
      </p>
      {shelf.reading && <Incomplete of={shelf.reading} />}
      <Unreadable left={shelf.left ?? []} />
      {table ? (
        <Table runs={shown} marks={marks} />
      ) : (
        <ul class="cards">
          {shown.map((run) => (
            <Card key={run.id} run={run} marks={marks.get(run.id) ?? []} ends={ends} />
          ))}
        </ul>
      )}
      {shown.length < shelf.total && (
        <button class="act" type="button" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}

// Incomplete says that runs are missing, because the server has yet to read them.
function Incomplete({ of }: { of: Reading }) {
  return (
    <p class="lead" role="status">
      Prony has read {of.read} of {words.count(of.total, "run")}. The list has these; it is updated
      until all are read.
    </p>
  );
}

// Unreadable names the folders of runs that are not in the list, with the reasons.
function Unreadable({ left }: { left: Left[] }) {
  return left.length === 0 ? null : (
    <details class="data">
      <summary>{words.count(left.length, "run")} cannot be read</summary>
      <ul class="reasons">{left.map((l) => <li key={l.id}>{l.why}</li>)}</ul>
    </details>
  );
}

const none: Choices = { suites: [], targets: [], labels: [], machines: [] };

function Filters({ shelf, filter, view }: { shelf: Shelf; filter: Filter; view: string }) {
  const [wanted, setWanted] = useState(false); // requested when the form gets the focus
  const ask = () => (wanted ? source.choices() : Promise.resolve(none));
  const loaded = useLoaded(ask, [wanted, shelf.all], true);
  const choices = loaded && "value" in loaded ? loaded.value : none;
  const set = (name: string) => (value: string) =>
    replace(to("runs", "", { ...filter, [name]: value, view }));
  const options = (of: string[]) => of.map((v): [string, string] => [v, v]);
  const machines = choices.machines.map((m): [string, string] => [
    m.key,
    words.machine({ machine: m }),
  ]);
  const value = (name: string) => filter[name] ?? "";
  const verdicts = ["valid", "suspect", "invalid", "failed", "missing"];
  return (
    <form
      class="filters"
      aria-label="Which runs"
      onFocusIn={() => setWanted(true)}
      onMouseEnter={() => setWanted(true)}
      onSubmit={(e) => e.preventDefault()}
    >
      <Text label="Words" type="search" value={value("text")} changed={set("text")} />
      <Select label="Suite" none="all" value={value("suite")}
        options={options(choices.suites)} changed={set("suite")} />
      <Select label="Target" none="all" value={value("target")}
        options={options(choices.targets)} changed={set("target")} />
      <Select label="Trials" none="all" value={value("verdict")}
        options={verdicts.map((v) => [v, filters[v] ?? v])}
        changed={set("verdict")} />
      <Select label="Label" none="all" value={value("label")} options={options(choices.labels)}
        changed={set("label")} />
      {(machines.length > 1 || value("machine") !== "") && (
        <Select label="Machine" none="all" value={value("machine")} options={machines}
          changed={set("machine")} />
      )}
      <Text label="From" type="date" value={value("from")} changed={set("from")} />
      <Text label="To" type="date" value={value("to")} changed={set("to")} />
      {Object.keys(filter).length > 0 && (
        <a class="clear" href={to("runs", "", { view })}>
          Show all
        </a>
      )}
    </form>
  );
}

// filters are what can be asked of the trials of a run.
const filters: Record<string, string> = {
  valid: "some VALID",
  suspect: "some with findings",
  invalid: "some INVALID",
  failed: "some failed",
  missing: "some missing",
};

interface TextProps {
  label: string;
  type: "search" | "date";
  value: string;
  changed: (value: string) => void;
}

function Text({ label, type, value, changed }: TextProps) {
  return (
    <label>
      {label}
      {type === "date" ? (
        <input type="date" value={value} onInput={(e) => changed(e.currentTarget.value)} />
      ) : (
        <input type="search" value={value} onInput={(e) => changed(e.currentTarget.value)} />
      )}
    </label>
  );
}

// alike names the rankings whose values are drawn on one axis.
function alike(run: Entry, r: Ranked): string {
  return [run.suite, run.machine.key, r.scenario, r.load, r.metric].join("\n");
}

// endsOf are the ends of the axes of the rankings, each with room for all listed runs that are
// alike: on an axis of its own, a lone target is at the same place in every card.
function endsOf(runs: Entry[]): Map<string, number> {
  const ends = new Map<string, number>();
  for (const run of runs) {
    for (const r of run.ranking ?? []) {
      const key = alike(run, r);
      ends.set(key, Math.max(ends.get(key) ?? 0, endOf(r.rows ?? [])));
    }
  }
  return ends;
}

interface CardProps {
  run: Entry;
  marks: Mark[];
  ends: Map<string, number>;
}

function Card({ run, marks, ends }: CardProps) {
  return (
    <li class="card">
      <Level of={marks} />
      <p class="kicker">
        {[words.moment(run.time), words.repeats(run)].filter(Boolean).join(" · ")}
      </p>
      <h2>
        <a href={to("run", run.id)}>{words.title(run)}</a>
      </h2>
      {run.question && <p class="question">{run.question}</p>}
      {run.answer && <p class="says">{run.answer}</p>}
      <Verdicts run={run} />
      {(run.ranking ?? []).slice(0, 1).map((r) => (
        <Ranking key={r.scenario} of={r} most={6} end={ends.get(alike(run, r))} />
      ))}
      <p class="foot">
        {words.machine(run)}
        <Labels of={run.labels} />
      </p>
      <p class="foot">
        <a href={source.report(run.id)} data-report>Report</a>
        <a href={to("compare", "", { b: run.id })}>Compare …</a>
      </p>
    </li>
  );
}

// Level is the first change of level that History found to begin with a run; its title has all. It
// comes after the list and has a place of its own, so that nothing moves under the reader's mouse.
function Level({ of }: { of: Mark[] }) {
  const [first] = of;
  if (!first) {
    return null;
  }
  const text = "level " + first.change;
  const all = `${text}: ${of.map((m) => m.text).join("; ")}`;
  return (
    <a class={"badge level " + (first.worse ? "worse" : "better")} href={first.href} title={all}
      aria-label={all}>
      {text}
    </a>
  );
}

// best is the first row of a run's first ranking, in words.
function best(run: Entry): string {
  const [of] = run.ranking ?? [];
  const [row] = of?.rows ?? [];
  return of && row ? `${row.target} ${words.amount(row.center, of.unit)}` : "";
}

function Table({ runs, marks }: { runs: Entry[]; marks: Marks }) {
  return (
    <Box label="Runs">
      <table class="plain runs">
        <caption>Runs, the newest first</caption>
        <thead>
          <tr>
            {["began", "run", "result", "verdicts", "report"].map((h) => (
              <th key={h} scope="col">{h}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              <td>{words.moment(run.time)}</td>
              <th scope="row"><a href={to("run", run.id)}>{words.title(run)}</a></th>
              <td class="words">
                {run.answer || best(run)}
                {" "}
                <Level of={marks.get(run.id) ?? []} />
              </td>
              <td><Verdicts run={run} /></td>
              <td><a href={source.report(run.id)} data-report>Report</a></td>
            </tr>
          ))}
        </tbody>
      </table>
    </Box>
  );
}

export function Verdicts({ run }: { run: Entry }) {
  return (
    <ul class="badges" aria-label="Verdicts">
      {run.state !== "done" && (
        <li>
          <Badge grade={run.state} text={run.state === "running" ? "under way" : "was stopped"} />
        </li>
      )}
      {words.verdicts(run).map(({ grade, text }) => (
        <li key={text}>
          <Badge grade={grade} text={text} />
        </li>
      ))}
    </ul>
  );
}

export function Labels({ of }: { of: Record<string, string> | null }) {
  return (
    <>
      {Object.entries(of ?? {}).map(([name, value]) => (
        <a class="label" key={name} href={to("runs", "", { label: `${name}=${value}` })}>
          {name}={value}
        </a>
      ))}
    </>
  );
}

// Ranking draws medians across trials from zero, so that lengths are what they say.
export function Ranking({ of, most, end }: { of: Ranked; most: number; end?: number }) {
  const rows = (of.rows ?? []).slice(0, most);
  const left = (of.rows ?? []).length - rows.length;
  const drawn: StripRow[] = rows.map((r) => ({
    name: r.target,
    center: r.center,
    lo: r.lo,
    hi: r.hi,
    text: words.amount(r.center, of.unit),
    tone: r.tier > 0 ? `of-${Math.min(r.tier, 6)}` : "withheld",
  }));
  const what = words.metric(of.load, of.metric);
  return (
    <>
      <p class="foot">
        {of.scenario}: {what}
      </p>
      <Strip
        bare
        caption={`${of.scenario}: ${what}`}
        head={["target", "from zero, with its interval", "median"]}
        rows={drawn}
        end={end}
        print={(x) => words.tick(x, of.unit)}
      />
      {left > 0 && <p class="foot">and {words.count(left, "other target")}</p>}
    </>
  );
}
