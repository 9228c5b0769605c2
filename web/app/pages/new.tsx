// A new run: a form of what there is, the plan as it changes, and the command that does the same.

import { useEffect, useState } from "preact/hooks";
import type { Repeat } from "../model";
import { Ask, Command, said, Trouble, useLoaded } from "../parts";
import { type Route, to } from "../route";
import { path } from "../server";
import { server } from "../source";
import * as words from "../words";

interface Suite {
  name: string;
  question: string;
  blocks: number;
  seed: number;
  measureS: number;
  cpus: number;
  memoryBytes: number;
  targets: string[] | null;
  scenarios: string[] | null;
  loads: string[] | null;
  launchers: string[] | null;
  problem?: string;
}

export interface Target {
  name: string;
  service: string;
  language: string;
  framework: string;
  missing: string[] | null;
  explicitOnly?: string;
}

interface Plan {
  trials: { trial: string; target: string; block: number }[] | null;
  repeat?: Repeat;
  leastS: number;
  mostS: number;
  command: string[] | null;
  problems: string[] | null;
  notes: string[] | null;
}

// Form is what the API takes; what is not in it is as in the suite.
interface Form {
  suite: string;
  targets?: string[];
  scenarios?: string[];
  loads?: string[];
  blocks?: number;
  for?: string;
  seed?: number;
  measure?: string;
  interleave?: string;
  limits?: { cpus?: number; memory?: string };
  launcher?: string[];
  agent?: string;
  telemetry?: boolean;
  labels?: Record<string, string>;
}

export function New({ route }: { route: Route }) {
  const loaded = useLoaded(async () => {
    const [suites, catalog] = await Promise.all([
      server!.get<{ suites: Suite[] | null }>(path("suites")),
      server!.get<{ targets: Target[] | null }>(path("catalog")),
    ]);
    return { suites: suites.suites ?? [], targets: catalog.targets ?? [] };
  }, []);
  return (
    <>
      <h1 tabIndex={-1}>New run</h1>
      <Ask of={loaded}>
        {(found) => <Choose {...found} suite={route.query.get("suite") ?? ""} />}
      </Ask>
    </>
  );
}

interface ChooseProps {
  suites: Suite[];
  targets: Target[];
  suite: string;
}

function Choose({ suites, targets, suite }: ChooseProps) {
  const first = suites.find((s) => s.name === suite) ?? suites.find((s) => s.name === "canonical");
  const [name, setName] = useState((first ?? suites[0])?.name ?? "");
  const [form, setForm] = useState<Form>({ suite: name });
  const [repeat, setRepeat] = useState<Repeat>("start");
  const chosen = suites.find((s) => s.name === name);
  if (!chosen) {
    return (
      <p class="lead">
        There are no suites: start prony serve in a checkout or beside a prony.yaml.
      </p>
    );
  }
  return (
    <>
      <form class="new" onSubmit={(e) => e.preventDefault()}
        onInput={(e) => setForm(formOf(e.currentTarget, chosen))}>
        <label class="field">
          Suite
          <select name="suite" value={name} onChange={(e) => {
            setName(e.currentTarget.value);
            setForm({ suite: e.currentTarget.value });
          }}>
            {suites.map((s) => <option key={s.name} value={s.name}>{s.name}</option>)}
          </select>
        </label>
        <p class="about">{chosen.question}</p>
        {chosen.problem && <Trouble text={chosen.problem} />}
        <Fields key={name} suite={chosen} targets={targets} repeat={repeat} />
      </form>
      <Planned form={form} repeats={setRepeat} />
      <SuiteText key={name} suite={name} />
    </>
  );
}

interface FieldsProps {
  suite: Suite;
  targets: Target[];
  repeat: Repeat;
}

function Fields({ suite, targets, repeat }: FieldsProps) {
  const launchers = suite.launchers ?? [];
  return (
    <>
      <fieldset>
        <legend>Targets</legend>
        <div class="targets">
          {(suite.targets ?? []).map((t) => (
            <Choice key={t} field="targets" name={t}
              found={targets.find((x) => x.name === t)} />
          ))}
        </div>
      </fieldset>
      <Some legend="Scenarios" name="scenarios" all={suite.scenarios ?? []} />
      <Some legend="Loads" name="loads" all={suite.loads ?? []} />
      <fieldset>
        <legend>How long</legend>
        <div class="filters">
          <label>
            Compare in
            <select name="interleave">
              <option value="">slices where possible, or as the suite says</option>
              <option value="slices">slices: targets side by side, in starts</option>
              <option value="blocks">blocks of whole trials</option>
            </select>
          </label>
          <Field label={repeat === "start" ? "Starts" : "Blocks"} name="blocks" type="number"
            min={1} hint={`default ${suite.blocks}`} />
          <Field label="or a time budget" name="for" hint="such as 5m" />
          <Field label="Measure each load for" name="measure" hint={`default ${suite.measureS}s`} />
          <Field label="Random seed of the order" name="seed" type="number" min={0}
            hint={`default ${suite.seed}`} />
        </div>
      </fieldset>
      <fieldset>
        <legend>Conditions</legend>
        <div class="filters">
          <Field label="Cores of a service" name="cpus" hint={`default ${suite.cpus}`} />
          <Field label="Memory of a service" name="memory"
            hint={`default ${words.amount(suite.memoryBytes, "B")}`} />
          {launchers.length > 1 && (
            <label>
              Launcher
              <select name="launcher">
                <option value="">as the suite has it</option>
                {launchers.map((l) => (
                  <option key={l} value={l}>{l}</option>
                ))}
              </select>
            </label>
          )}
          <Field label="Agent" name="agent" hint="default none" />
          <Field label="Labels" name="labels" hint="such as branch=main, pr=12" />
          <label class="check">
            <input type="checkbox" name="telemetry" /> run each target once
            more, with telemetry
          </label>
        </div>
      </fieldset>
    </>
  );
}

interface ChoiceProps {
  field: string;
  name: string;
  found?: Target;
}

function Choice({ field, name, found }: ChoiceProps) {
  const missing = found?.missing ?? [];
  return (
    <label>
      <input type="checkbox" name={field} value={name} disabled={missing.length > 0}
        defaultChecked={missing.length === 0} />
      <span>
        {name}
        {missing.length > 0 && <span class="missing">{missing.join("; ")}</span>}
      </span>
    </label>
  );
}

interface SomeProps {
  legend: string;
  name: string;
  all: string[];
}

// Some is a choice of what a suite has several of.
function Some({ legend, name, all }: SomeProps) {
  return all.length < 2 ? null : (
    <fieldset>
      <legend>{legend}</legend>
      <div class="targets">
        {all.map((one) => <Choice key={one} field={name} name={one} />)}
      </div>
    </fieldset>
  );
}

interface FieldProps {
  label: string;
  name: string;
  hint: string;
  type?: "number";
  min?: number;
}

function Field({ label, name, hint, type, min }: FieldProps) {
  return (
    <label>
      {label}
      {type === "number" ? (
        <input name={name} type="number" min={min} step={1} placeholder={hint} />
      ) : (
        <input name={name} type="text" placeholder={hint} autocomplete="off" />
      )}
    </label>
  );
}

// formOf reads a form: only what is not as the suite has it, so that the command says just that.
function formOf(element: HTMLFormElement, suite: Suite): Form {
  const data = new FormData(element);
  const text = (name: string) => String(data.get(name) ?? "").trim();
  const number = (name: string) => (text(name) === "" ? undefined : Number(text(name)));
  const boxes = (name: string) => element.querySelectorAll(`input[name="${name}"]:enabled`).length;
  const some = (name: "targets" | "scenarios" | "loads") => {
    const chosen = data.getAll(name).map(String);
    return chosen.length >= boxes(name) ? undefined : chosen;
  };
  const limits = { cpus: number("cpus"), memory: text("memory") || undefined };
  const labels = text("labels")
    .split(",")
    .map((pair) => /^([^=]*)=?(.*)$/s.exec(pair)?.slice(1).map((part) => part.trim()) ?? [])
    .filter(([name]) => name);
  return {
    suite: suite.name,
    targets: some("targets"),
    scenarios: some("scenarios"),
    loads: some("loads"),
    blocks: number("blocks"),
    for: text("for") || undefined,
    seed: number("seed"),
    measure: text("measure") || undefined,
    interleave: text("interleave") || undefined,
    limits: limits.cpus !== undefined || limits.memory ? limits : undefined,
    launcher: text("launcher") ? text("launcher").split(",") : undefined,
    agent: text("agent") || undefined,
    telemetry: data.has("telemetry") || undefined,
    labels: labels.length > 0
      ? Object.fromEntries(labels.map(([name, value]) => [name, value ?? ""]))
      : undefined,
  };
}

const rest = 300; // ms without a change before the server is asked
const newest = 5; // runs among which one under way is

interface PlannedProps {
  form: Form;
  repeats: (repeat: Repeat) => void; // called with what the plan repeats
}

function Planned({ form, repeats }: PlannedProps) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [wrong, setWrong] = useState("");
  const [refused, setRefused] = useState(""); // why the last start was; it may be tried again
  const [busy, setBusy] = useState(""); // the run because of which it was
  const [starting, setStarting] = useState(false);
  const text = JSON.stringify(form);
  useEffect(() => {
    let wanted = true;
    const timer = setTimeout(() => {
      server!.send<Plan>("POST", path("plan"), form).then(
        (p) => {
          if (wanted) {
            setPlan(p);
            setWrong("");
            setRefused("");
            repeats(p.repeat ?? "block");
          }
        },
        (error: unknown) => wanted && setWrong(said(error)),
      );
    }, rest);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text]);
  const start = () => {
    setStarting(true);
    setRefused("");
    server!.send<{ id: string }>("POST", path("runs"), form).then(
      ({ id }) => (location.hash = to("run", id)),
      (error: unknown) => {
        setStarting(false);
        setRefused(said(error));
        server!.runs({}, newest).then(
          ({ runs }) => setBusy(runs.find((r) => r.state === "running")?.id ?? ""),
          () => setBusy(""), // the refusal says enough
        );
      },
    );
  };
  const empty = (["targets", "scenarios", "loads"] as const).find((n) => form[n]?.length === 0);
  const problems = empty ? [`Choose at least one of the ${empty}.`] : (plan?.problems ?? []);
  const ready = plan !== null && problems.length === 0 && wrong === "";
  return (
    <section aria-label="Plan" class="plan">
      <h2>Plan</h2>
      {wrong && <Trouble text={wrong} />}
      {refused && <Trouble text={refused} />}
      {refused && busy && (
        <p class="doors"><a href={to("run", busy)}>Open the run under way, to stop it</a></p>
      )}
      {problems.map((p) => <Trouble key={p} text={p} />)}
      {!plan && !wrong && <p class="lead" role="status">Planning …</p>}
      {plan && !empty && (
        <>
          <p role="status">
            {words.count((plan.trials ?? []).length, "trial")}, {words.lasting(plan.leastS)} to{" "}
            {words.lasting(plan.mostS)} without builds
          </p>
          <ul class="reasons">{(plan.notes ?? []).map((n) => <li key={n}>{n}</li>)}</ul>
          <Command text={words.quoted(plan.command ?? [])} label="The same run as a command" />
          <details class="data">
            <summary>Order of trials</summary>
            <ol class="order">
              {(plan.trials ?? []).map((t) => (
                <li key={t.trial}>
                  <span>{plan.repeat ?? "block"} {t.block}</span> {t.target}
                </li>
              ))}
            </ol>
          </details>
        </>
      )}
      <p class="doors">
        <button class="act" type="button" disabled={!ready || starting} onClick={start}>
          {starting ? "Starting …" : "Start"}
        </button>
        <a href={to("host")}>Is this machine fit?</a>
      </p>
    </section>
  );
}

// SuiteText shows the suite's file in a field. The server checks the edited text. To run it, a
// reader saves it as a file and chooses that suite.
function SuiteText({ suite }: { suite: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="data" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>The suite as YAML</summary>
      {open && <Loading suite={suite} />}
    </details>
  );
}

function Loading({ suite }: { suite: string }) {
  const loaded = useLoaded(() => server!.get<{ yaml?: string }>(path("suites", suite)), [suite]);
  return <Ask of={loaded}>{({ yaml }) => <Editor suite={suite} saved={yaml ?? ""} />}</Ask>;
}

function Editor({ suite, saved }: { suite: string; saved: string }) {
  const [text, setText] = useState(saved);
  const [problems, setProblems] = useState<string[] | null>([]); // null: not checked yet
  useEffect(() => {
    let wanted = true;
    if (text === saved) {
      setProblems([]);
      return;
    }
    setProblems(null);
    const timer = setTimeout(() => {
      server!.send<{ problems: string[] }>("POST", path("check"), { suite, yaml: text }).then(
        (found) => wanted && setProblems(found.problems),
        (error: unknown) => wanted && setProblems([said(error)]),
      );
    }, rest);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text]);
  const edited = text !== saved;
  return (
    <>
      <textarea class="yaml" aria-label="YAML" rows={20} spellcheck={false} value={text}
        onInput={(e) => setText(e.currentTarget.value)} />
      {problems?.map((p) => <Trouble key={p} text={p} />)}
      {edited && (
        <p role="status">
          {problems === null
            ? "Checking …"
            : problems.length > 0
              ? words.count(problems.length, "problem")
              : "No problems. To run it, save it in the folder suites and choose it above."}
        </p>
      )}
      <p class="filters">
        <button class="act" type="button" disabled={!edited || problems?.length !== 0}
          onClick={() => save(text)}>
          Save as a file
        </button>
        <button class="act" type="button" disabled={!edited} onClick={() => setText(saved)}>
          Undo all changes
        </button>
      </p>
    </>
  );
}

// save hands a suite to the reader as a file that has the suite's name.
function save(text: string): void {
  const name = /^name:\s*["']?([\w.-]+)/m.exec(text)?.[1] ?? "suite";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  link.download = `${name}.yaml`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
