// A new run: a form of what there is, the plan as it changes, and the command that does the same.

import { useEffect, useState } from "preact/hooks";
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
  aside?: string;
}

interface Plan {
  trials: { trial: string; target: string; block: number }[] | null;
  leastS: number;
  mostS: number;
  yaml: string;
  command: string[] | null;
  problems: string[] | null;
  notes: string[] | null;
}

// Form is what the API takes; what is not in it is as the suite has it.
interface Form {
  suite: string;
  targets?: string[];
  scenarios?: string[];
  loads?: string[];
  blocks?: number;
  for?: string;
  seed?: number;
  measure?: string;
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
  // The fields are the browser's own. They begin with what is given, and again each time that is.
  const [given, setGiven] = useState({ times: 0, form });
  const give = (next: Form) => {
    setForm(next);
    setGiven(({ times }) => ({ times: times + 1, form: next }));
  };
  const chosen = suites.find((s) => s.name === name);
  if (!chosen) {
    return <p class="lead">There is no suite here: begin prony serve in a checkout.</p>;
  }
  return (
    <>
      <form class="new" onSubmit={(e) => e.preventDefault()}
        onInput={(e) => setForm(formOf(e.currentTarget, chosen))}>
        <label class="field">
          Suite
          <select name="suite" value={name} onChange={(e) => {
            setName(e.currentTarget.value);
            give({ suite: e.currentTarget.value });
          }}>
            {suites.map((s) => <option key={s.name} value={s.name}>{s.name}</option>)}
          </select>
        </label>
        <p class="about">{chosen.question}</p>
        {chosen.problem && <Trouble text={chosen.problem} />}
        <Fields key={name + given.times} suite={chosen} targets={targets} as={given.form} />
      </form>
      <Planned form={form} read={(text) => give(over(form, text))} />
    </>
  );
}

// over is a form with what a text says in place of what texts can say. A number of blocks, which a
// text can, is instead of a time, which none can.
function over(form: Form, text: Partial<Form>): Form {
  const { suite, telemetry, labels } = form;
  const time = text.blocks === undefined ? form.for : undefined;
  return { suite, for: time, telemetry, labels, ...text };
}

interface FieldsProps {
  suite: Suite;
  targets: Target[];
  as: Form; // what the fields begin with
}

function Fields({ suite, targets, as }: FieldsProps) {
  const rows = both(suite.targets ?? [], as.targets ?? []);
  const launcher = as.launcher?.join(",") ?? "";
  const launchers = both(suite.launchers ?? [], launcher ? [launcher] : []);
  return (
    <>
      <fieldset>
        <legend>Targets</legend>
        <div class="targets">
          {rows.map((t) => (
            <Choice key={t} field="targets" name={t} of={as.targets}
              found={targets.find((x) => x.name === t)} />
          ))}
        </div>
      </fieldset>
      <Some legend="Scenarios" name="scenarios" all={suite.scenarios ?? []} of={as.scenarios} />
      <Some legend="Loads" name="loads" all={suite.loads ?? []} of={as.loads} />
      <fieldset>
        <legend>How long</legend>
        <div class="filters">
          <Field label="Blocks" name="blocks" type="number" min={1} hint={String(suite.blocks)}
            as={as.blocks} />
          <Field label="or for a time" name="for" hint="5m" as={as.for} />
          <Field label="Window of a load" name="measure" hint={`${suite.measureS}s`}
            as={as.measure} />
          <Field label="Seed of the order" name="seed" type="number" min={0}
            hint={String(suite.seed)} as={as.seed} />
        </div>
      </fieldset>
      <fieldset>
        <legend>Conditions</legend>
        <div class="filters">
          <Field label="Processors of a service" name="cpus" hint={String(suite.cpus)}
            as={as.limits?.cpus} />
          <Field label="Memory of a service" name="memory"
            hint={words.amount(suite.memoryBytes, "B")} as={as.limits?.memory} />
          {launchers.length > 1 && (
            <label>
              Launcher
              <select name="launcher">
                <option value="">as the suite has it</option>
                {launchers.map((l) => (
                  <option key={l} value={l} selected={l === launcher}>{l}</option>
                ))}
              </select>
            </label>
          )}
          <Field label="Agent" name="agent" hint="none" as={as.agent} />
          <Field label="Labels" name="labels" hint="branch=main, pr=12"
            as={Object.entries(as.labels ?? {}).map((pair) => pair.join("=")).join(", ")} />
          <label class="check">
            <input type="checkbox" name="telemetry" defaultChecked={as.telemetry} /> one more trial
            each, in which all is watched
          </label>
        </div>
      </fieldset>
    </>
  );
}

// both are the entries of two lists, each once.
function both(a: string[], b: string[]): string[] {
  return [...new Set([...a, ...b])];
}

interface ChoiceProps {
  field: string;
  name: string;
  of: string[] | undefined; // those that are chosen; undefined: all that can be
  found?: Target;
}

function Choice({ field, name, of, found }: ChoiceProps) {
  const missing = found?.missing ?? [];
  const chosen = of ? of.includes(name) : missing.length === 0;
  return (
    <label>
      <input type="checkbox" name={field} value={name} disabled={missing.length > 0 && !chosen}
        defaultChecked={chosen} />
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
  of: string[] | undefined;
}

// Some is a choice of what a suite has several of.
function Some({ legend, name, all, of }: SomeProps) {
  return all.length < 2 ? null : (
    <fieldset>
      <legend>{legend}</legend>
      <div class="targets">
        {all.map((one) => <Choice key={one} field={name} name={one} of={of} />)}
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
  as: string | number | undefined; // what stands in it at first
}

function Field({ label, name, hint, type, min, as }: FieldProps) {
  const first = as === undefined ? "" : String(as);
  return (
    <label>
      {label}
      {type === "number" ? (
        <input name={name} type="number" min={min} step={1} placeholder={hint}
          defaultValue={first} />
      ) : (
        <input name={name} type="text" placeholder={hint} autocomplete="off"
          defaultValue={first} />
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
    const own = suite[name] ?? [];
    const all = chosen.length >= boxes(name) && chosen.every((one) => own.includes(one));
    return all ? undefined : chosen;
  };
  const limits = { cpus: number("cpus"), memory: text("memory") || undefined };
  const labels = text("labels")
    .split(",")
    .map((pair) => pair.split("=", 2).map((part) => part.trim()))
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
    limits: limits.cpus !== undefined || limits.memory ? limits : undefined,
    launcher: text("launcher") ? text("launcher").split(",") : undefined,
    agent: text("agent") || undefined,
    telemetry: data.has("telemetry") || undefined,
    labels: labels.length > 0
      ? Object.fromEntries(labels.map(([name, value]) => [name, value ?? ""]))
      : undefined,
  };
}

const rest = 300; // ms without a change before the plan is asked for

interface PlannedProps {
  form: Form;
  read: (text: Partial<Form>) => void; // takes over what a text says
}

function Planned({ form, read }: PlannedProps) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [wrong, setWrong] = useState("");
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
    server!.send<{ id: string }>("POST", path("runs"), form).then(
      ({ id }) => (location.hash = to("run", id)),
      (error: unknown) => {
        setStarting(false);
        setWrong(said(error));
      },
    );
  };
  const problems = plan?.problems ?? [];
  const ready = plan !== null && problems.length === 0 && wrong === "";
  return (
    <section aria-label="Plan" class="plan">
      <h2>Plan</h2>
      {wrong && <Trouble text={wrong} />}
      {problems.map((p) => <Trouble key={p} text={p} />)}
      {!plan && !wrong && <p class="lead" role="status">Asking what is here …</p>}
      {plan && (
        <>
          <p role="status">
            {words.count((plan.trials ?? []).length, "trial")}, {words.lasting(plan.leastS)} to{" "}
            {words.lasting(plan.mostS)} without builds
          </p>
          <ul class="reasons">{(plan.notes ?? []).map((n) => <li key={n}>{n}</li>)}</ul>
          <Command text={quoted(plan.command ?? [])} label="The command that does the same" />
          <details class="data">
            <summary>Order of trials</summary>
            <ol class="order">
              {(plan.trials ?? []).map((t) => (
                <li key={t.trial}>
                  <span>block {t.block}</span> {t.target}
                </li>
              ))}
            </ol>
          </details>
          <Text key={form.suite} suite={form.suite} text={plan.yaml} read={read} />
        </>
      )}
      <p class="doors">
        <button class="act" type="button" disabled={!ready || starting} onClick={start}>
          {starting ? "Starting …" : "Start"}
        </button>
      </p>
    </section>
  );
}

interface TextProps {
  suite: string;
  text: string; // as the form has it
  read: (text: Partial<Form>) => void;
}

// Text is the suite as YAML. What somebody has edited stays until the form says the same: what no
// form can say is not to be lost with the reason why.
function Text({ suite, text, read }: TextProps) {
  const [edited, setEdited] = useState<string | null>(null);
  const [problems, setProblems] = useState<string[]>([]);
  const put = (next: string | null) => {
    setEdited(next);
    setProblems([]);
  };
  const apply = () => {
    server!
      .send<{ form: Partial<Form>; problems: string[] | null }>("POST", path("form"), {
        suite,
        yaml: edited,
      })
      .then(
        (found) => {
          if ((found.problems ?? []).length > 0) {
            setProblems(found.problems ?? []);
            return;
          }
          put(null);
          read(found.form);
        },
        (error: unknown) => setProblems([said(error)]),
      );
  };
  return (
    <details class="data">
      <summary>The suite as YAML</summary>
      <textarea class="yaml" aria-label="YAML" rows={20} spellcheck={false} value={edited ?? text}
        onInput={(e) => put(e.currentTarget.value)} />
      {problems.map((p) => <Trouble key={p} text={p} />)}
      <p class="filters">
        <button class="act" type="button" disabled={edited === null} onClick={apply}>
          Apply to the form
        </button>
        {edited !== null && (
          <button class="act" type="button" onClick={() => put(null)}>
            As the form has it
          </button>
        )}
      </p>
    </details>
  );
}

// quoted is a command line as a shell takes it.
function quoted(args: string[]): string {
  return args
    .map((a) => (/^[\w./:=,@%+-]+$/.test(a) ? a : `'${a.replace(/'/g, `'\\''`)}'`))
    .join(" ");
}
