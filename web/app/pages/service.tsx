// One target by hand: it is started, its contract checked; it is asked whatever somebody types, and
// loaded for some seconds. Nothing of it is a run: what is measured is seen once and kept nowhere.

import "../service.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { fieldsOf, NumberField, type Range, useDeed, useLooks } from "../deed";
import { Ask, Badge, Box, Facts, said, Select, Trouble, useLoaded } from "../parts";
import type { Route } from "../route";
import { path } from "../server";
import { server } from "../source";
import * as words from "../words";
import { Loads, Requests } from "./byhand";
import type { Target } from "./new";
import { Followed } from "./progress";

// Service is the one that the server has, or had. Lists that are empty may be null or not there.
interface Service {
  state: "none" | "starting" | "running" | "ended";
  target?: string;
  url?: string;
  readyS?: number;
  inForce?: string[] | null;
  missing?: string[] | null; // limits that nothing enforces
  cases?: Case[] | null;
  checked?: boolean; // those are all
  usage?: Usage[] | null;
  paths?: string[] | null;
  said?: string[] | null;
  measuring?: boolean;
}

interface Case {
  contract: string;
  name: string;
  request: string;
  state: "pass" | "fail" | "skip";
  text: string;
}

interface Usage {
  tS: number;
  cores: number;
  memoryBytes: number;
  processes: number;
}

const lookEvery = 1000; // ms, at a service that starts or runs
const logEvery = 2000; // ms
const shownS = 120; // of usage, which is what the server keeps
const processors: Range = { least: 0.1, usual: 1, step: "any" };
function isThere(s: Service | null): boolean {
  return s?.state === "starting" || s?.state === "running";
}

// Acts are what parts of the page do with the service as they know it.
interface Acts {
  take: (s: Service) => Service; // the server has answered with it
  look: () => Promise<void>; // ask for it
}

export function ServicePage(_: { route: Route }) {
  const [service, setService] = useState<Service | null>(null);
  const [wrong, setWrong] = useState("");
  const turn = useRef(0); // an answer that was asked for before another came is out of date
  const take = (s: Service) => {
    turn.current++;
    setService(s);
    setWrong("");
    return s;
  };
  const look = async () => {
    const mine = turn.current;
    try {
      const s = await server!.get<Service>(path("service"));
      if (mine === turn.current) {
        take(s);
      }
    } catch (error) {
      setWrong(said(error));
    }
  };
  useLooks(look, lookEvery, isThere(service));
  return (
    <div class="service">
      <h1 tabIndex={-1}>Service</h1>
      <p class="about">
        One target by hand, under the limits that it has in a run, to see what it answers. What is
        measured here is kept nowhere: for numbers to be compared there are runs.
      </p>
      {wrong && <Trouble text={wrong} />}
      {!service && !wrong && <p class="lead" role="status">Loading …</p>}
      {service && service.state !== "none" && (
        <One s={service} first={turn.current === 1} take={take} look={look} />
      )}
      {service && !isThere(service) && <Start last={service.target} take={take} look={look} />}
    </div>
  );
}

// Start offers the last target first: somebody changed it, and tries again.
function Start(props: Acts & { last?: string }) {
  const loaded = useLoaded(() => server!.get<{ targets: Target[] | null }>(path("catalog")), []);
  return (
    <section aria-labelledby="start-title" class="noprint">
      <h2 id="start-title">{props.last ? "Start another" : "Start one"}</h2>
      <Ask of={loaded}>
        {({ targets }) => <StartForm targets={targets ?? []} {...props} />}
      </Ask>
    </section>
  );
}

function lacks(t: Target): string {
  return (t.missing ?? []).join("; ");
}

function StartForm({ targets, last, take, look }: Acts & { last?: string; targets: Target[] }) {
  const can = targets.filter((t) => lacks(t) === "");
  const cannot = targets.filter((t) => lacks(t) !== "");
  const first = can.find((t) => t.name === last) ?? can.find((t) => !t.explicitOnly) ?? can[0];
  const [name, setName] = useState(first?.name ?? "");
  const chosen = can.find((t) => t.name === name);
  const deed = useDeed<Service>();
  const start = (e: SubmitEvent) => {
    e.preventDefault();
    const { text, number } = fieldsOf(e);
    const form = { target: name, cpus: number("cpus"), memory: text("memory") || undefined };
    deed.act(() =>
      server!.send<Service>("POST", path("service"), form).then(take, async (error: unknown) => {
        await look(); // another may have begun one, which is then to be seen
        throw error;
      }),
    );
  };
  if (targets.length === 0) {
    return <p class="lead">There is no target here: begin prony serve in a checkout.</p>;
  }
  return (
    <>
      <form class="filters" onSubmit={start} aria-labelledby="start-title">
        <Select label="Target" value={name} options={can.map((t) => [t.name, t.name])}
          changed={setName} />
        <NumberField label="Processors" name="cpus" of={processors} />
        <label>
          Memory
          <input name="memory" type="text" placeholder="1GiB" autocomplete="off" />
        </label>
        <button class="act" type="submit" disabled={!chosen || deed.busy}>
          {deed.busy ? "Starting …" : "Start"}
        </button>
      </form>
      {chosen && (
        <p class="lead" role="status">
          {[chosen.language, chosen.framework].filter(Boolean).join(", ")}
          {chosen.explicitOnly && `; in suites only where it is named: ${chosen.explicitOnly}`}
        </p>
      )}
      {deed.wrong && <Trouble text={deed.wrong} />}
      {cannot.length > 0 && (
        <details class="data" open={can.length === 0}>
          <summary>{words.count(cannot.length, "target")} cannot run here</summary>
          <Facts of={cannot.map((t): [string, string] => [t.name, lacks(t)])} />
        </details>
      )}
    </>
  );
}

const grades = { none: "none", starting: "running", running: "fit", ended: "stopped" };

function One({ s, first, take, look }: Acts & { s: Service; first: boolean }) {
  const steps = s.said ?? [];
  const lacking = (s.missing ?? []).join("; ");
  const title = useRef<HTMLHeadingElement>(null);
  // Who pressed a button that has gone with the state it was for, such as Start, goes on from here:
  // the focus would be at the top of the page.
  useEffect(() => {
    if (!first && document.activeElement === document.body) {
      title.current?.focus({ preventScroll: true });
    }
  }, [s.state]);
  return (
    <section aria-labelledby="service-title">
      <h2 id="service-title" tabIndex={-1} ref={title}>{s.target}</h2>
      <p class="state" role="status">
        <Badge grade={grades[s.state]} text={s.state} /> <span>{steps[steps.length - 1]}</span>
      </p>
      <Facts
        of={[
          ["listens at", s.url && <code>{s.url}</code>],
          ["ready after", s.readyS ? words.amount(s.readyS * 1e9, "ns") : ""],
          ["limits in force", (s.inForce ?? []).join("; ")],
          ["limits not enforced", lacking && <span class="says worse">{lacking}</span>],
        ]}
      />
      {isThere(s) && <Stop take={take} />}
      <Used of={s.usage ?? []} ended={s.state === "ended"} />
      <Checked of={s.cases ?? []} all={s.checked === true} under={s.state === "running"} />
      {s.state === "running" && (
        <div class="sides">
          <Requests paths={s.paths ?? []} />
          <Loads paths={s.paths ?? []} measuring={s.measuring === true} look={look} />
        </div>
      )}
      <Log key={s.target} target={s.target ?? ""} again={isThere(s)} />
      {steps.length > 0 && (
        <details class="data" open={s.state !== "running"}>
          <summary>How it was started</summary>
          <Followed title={`Steps of ${s.target}`} text={steps.join("\n")} />
        </details>
      )}
      <datalist id="service-paths">
        {(s.paths ?? []).map((p) => <option key={p} value={p} />)}
      </datalist>
    </section>
  );
}

function Stop({ take }: Pick<Acts, "take">) {
  const deed = useDeed<Service>();
  const asked = deed.busy || deed.value !== null; // until it has ended, and this is no more
  const stop = () =>
    deed.act(() => server!.send<Service>("DELETE", path("service"), {}).then(take));
  return (
    <div class="noprint">
      {deed.wrong && <Trouble text={deed.wrong} />}
      <p class="doors">
        <button class="act danger" type="button" disabled={asked} onClick={stop}>
          {asked ? "Stopping …" : "Stop"}
        </button>
      </p>
    </div>
  );
}

// Used changes every second and is no status: a screen reader would say nothing else.
function Used({ of, ended }: { of: Usage[]; ended: boolean }) {
  const now = of[of.length - 1];
  if (!now) {
    return null;
  }
  return (
    <div class="now">
      <div class="dials">
        <Dial name="processors" of={of.map((u) => [u.tS, u.cores])}
          text={(x) => x.toFixed(2) + " cores"} />
        <Dial name="memory" of={of.map((u) => [u.tS, u.memoryBytes])}
          text={(x) => words.amount(x, "B")} />
      </div>
      <p class="foot">
        <span>{now.processes === 1 ? "1 process" : `${now.processes} processes`}</span>
        <span>{ended ? "its" : "the"} last two minutes, from zero</span>
      </p>
    </div>
  );
}

interface DialProps {
  name: string;
  of: [tS: number, value: number][];
  text: (x: number) => string;
}

// Dial is a value as it is now, with where it came from. Its axis is two minutes long from the
// beginning, so that a line does not shrink as it grows.
function Dial({ name, of, text }: DialProps) {
  const [end, now] = of[of.length - 1] ?? [0, 0];
  const most = Math.max(...of.map(([, value]) => value));
  const x = (tS: number) => (100 * (1 - (end - tS) / shownS)).toFixed(2);
  const y = (value: number) => (38 - (36 * value) / (most || 1)).toFixed(1);
  const title = `${name}: ${text(now)}, at most ${text(most)} in the last two minutes`;
  return (
    <div class="dial">
      <span class="name">{name}</span>
      <span class="value">{text(now)}</span>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={title}>
        <title>{title}</title>
        <polyline points={of.map(([tS, value]) => `${x(tS)},${y(value)}`).join(" ")} />
      </svg>
      <span class="name most">at most {text(most)}</span>
    </div>
  );
}

// Checked is the contract, case by case: what fails is open, what passes is folded.
function Checked({ of, all, under }: { of: Case[]; all: boolean; under: boolean }) {
  const are = (state: Case["state"]) => of.filter((c) => c.state === state);
  const [failed, passed, skipped] = [are("fail"), are("pass"), are("skip")];
  if (of.length === 0 || !all && under) {
    const text = all ? "It declares no contract." : "Its contract is being checked …";
    return under ? <p class="lead" role="status">{text}</p> : null;
  }
  return (
    <>
      <h3>Its contract</h3>
      <p class="state" role="status">
        <Badge grade={failed.length > 0 ? "fail" : "pass"}
          text={`${words.count(failed.length, "case")} failed`} />
        <span>{`${passed.length} passed, ${skipped.length} skipped`}</span>
      </p>
      <ul class="findings">
        {failed.map((c, k) => (
          <li key={k} class="invalid">
            <strong>{c.request || c.name}</strong>
            <span class="why">{c.text}</span>
            <span class="hint">{`${c.contract}: ${c.name}`}</span>
          </li>
        ))}
      </ul>
      <Folded of={passed} summary={`${words.count(passed.length, "case")} passed`} />
      <Folded of={skipped} summary={`${words.count(skipped.length, "case")} skipped`} why />
    </>
  );
}

function Folded({ of, summary, why }: { of: Case[]; summary: string; why?: boolean }) {
  const head = ["request", "case", "contract", ...(why ? ["why"] : [])];
  return of.length === 0 ? null : (
    <details class="data">
      <summary>{summary}</summary>
      <Box label={summary}>
        <table class="plain">
          <thead>
            <tr>{head.map((h) => <th key={h} scope="col">{h}</th>)}</tr>
          </thead>
          <tbody>
            {of.map((c, k) => (
              <tr key={k}>
                <td>{c.request}</td>
                <td>{c.name}</td>
                <td>{c.contract}</td>
                {why && <td class="words">{c.text}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </Box>
    </details>
  );
}

// Log is asked for while it is open: it is the longest of what the page shows.
function Log({ target, again }: { target: string; again: boolean }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const look = () =>
    server!.text(path("service", "log")).then(setText, (error: unknown) => setText(said(error)));
  useLooks(look, logEvery, again, open);
  return (
    <details class="data apart" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>What it wrote</summary>
      <Followed title={`Log of ${target}`} text={text || "Nothing so far."} />
    </details>
  );
}
