// All runs, newest first, with what each found as a small figure.

import { useEffect, useState } from "preact/hooks";
import { type Filter, matches, offered, read } from "../filter";
import type { Entry, Ranked, Shelf } from "../model";
import { Ask, Badge, Select, useLoaded } from "../parts";
import { replace, type Route, to } from "../route";
import { source } from "../source";
import { Strip, type StripRow } from "../strip";
import * as words from "../words";

const shownAtFirst = 24;

export function Runs({ route }: { route: Route }) {
  const filter = read(route.query);
  const filtered = Object.keys(filter).length > 0;
  const [count, setCount] = useState(shownAtFirst);
  const all = filtered || count > shownAtFirst;
  const loaded = useLoaded(() => source.runs(all), [all], true);
  return (
    <>
      <h1 tabIndex={-1}>Runs</h1>
      <Ask of={loaded}>
        {(shelf) => (
          <Listed shelf={shelf} filter={filter} count={count} more={() => setCount(count + 96)} />
        )}
      </Ask>
    </>
  );
}

interface ListedProps {
  shelf: Shelf;
  filter: Filter;
  count: number;
  more: () => void;
}

function Listed({ shelf, filter, count, more }: ListedProps) {
  const found = shelf.runs.filter((r) => matches(r, filter));
  const filtered = Object.keys(filter).length > 0;
  const total = filtered ? found.length : shelf.total;
  if (shelf.total === 0) {
    return (
      <>
        <p class="lead">There are no runs yet. On the command line, start one with prony run.</p>
        {source.kind === "server" && (
          <p class="doors"><a class="act" href={to("new")}>Start the first run</a></p>
        )}
      </>
    );
  }
  return (
    <>
      <Filters shelf={shelf} filter={filter} />
      <p class="lead" role="status">
        {filtered ? `${found.length} of ${words.count(shelf.total, "run")}` : ""}
        {!filtered && words.count(shelf.total, "run") + ", the newest first"}
      </p>
      <ul class="cards">
        {found.slice(0, count).map((run) => (
          <Card key={run.id} run={run} />
        ))}
      </ul>
      {Math.min(count, found.length) < total && (
        <button class="act" type="button" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}

function Filters({ shelf, filter }: { shelf: Shelf; filter: Filter }) {
  const [known, setKnown] = useState(shelf.runs);
  // What can be chosen is of all runs, which are not here when the page begins.
  const whole = async () => {
    if (known.length < shelf.total) {
      setKnown((await source.runs(true)).runs);
    }
  };
  useEffect(() => {
    if (shelf.runs.length > known.length) {
      setKnown(shelf.runs);
    }
  }, [shelf]);
  const set = (name: string) => (value: string) =>
    replace(to("runs", "", { ...filter, [name]: value }));
  const options = (of: (run: Entry) => string[]) =>
    offered(known, of).map((v): [string, string] => [v, v]);
  const machines = new Map(known.map((r) => [r.machine.key, words.machine(r)]));
  const labels = (r: Entry) => Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`);
  const value = (name: string) => filter[name] ?? "";
  const verdicts = ["valid", "suspect", "invalid", "failed", "missing"];
  return (
    <form
      class="filters"
      aria-label="Which runs"
      onFocusIn={() => void whole()}
      onSubmit={(e) => e.preventDefault()}
    >
      <Text label="Words" type="search" value={value("text")} changed={set("text")} />
      <Select label="Suite" none="all" value={value("suite")}
        options={options((r) => [r.suite])} changed={set("suite")} />
      <Select label="Target" none="all" value={value("target")}
        options={options((r) => r.targets ?? [])} changed={set("target")} />
      <Select label="Trials" none="all" value={value("verdict")}
        options={verdicts.map((v) => [v, v === "valid" ? "all valid" : "some " + v])}
        changed={set("verdict")} />
      <Select label="Label" none="all" value={value("label")} options={options(labels)}
        changed={set("label")} />
      {machines.size > 1 && (
        <Select label="Machine" none="all" value={value("machine")} options={[...machines]}
          changed={set("machine")} />
      )}
      <Text label="From" type="date" value={value("from")} changed={set("from")} />
      <Text label="To" type="date" value={value("to")} changed={set("to")} />
      {Object.keys(filter).length > 0 && (
        <a class="clear" href={to("runs")}>
          Show all
        </a>
      )}
    </form>
  );
}

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

function Card({ run }: { run: Entry }) {
  return (
    <li class="card">
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
        <Ranking key={r.scenario} of={r} most={6} />
      ))}
      <p class="foot">
        {words.machine(run)}
        <Labels of={run.labels} />
      </p>
      <p class="foot">
        <a href={source.report(run.id)}>Report</a>
        <a href={to("compare", "", { b: run.id })}>Compare …</a>
      </p>
    </li>
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
        <li key={grade}>
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
export function Ranking({ of, most }: { of: Ranked; most: number }) {
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
        {of.scenario}: {what}, from zero
      </p>
      <Strip
        bare
        caption={`${of.scenario}: ${what}`}
        head={["target", "from zero, with its interval", "median"]}
        rows={drawn}
      />
      {left > 0 && <p class="foot">and {words.count(left, "other target")}</p>}
    </>
  );
}
