// One run in short. Its report is a document of its own, which reads without this app and without
// scripts, and can be sent to somebody as one file: here stand what it found and the way to it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry, Repeat } from "../model";
import { Ask, Facts, said, Trouble, useLoaded } from "../parts";
import { type Route, to } from "../route";
import { path } from "../server";
import { server, source } from "../source";
import * as words from "../words";
import { Boards } from "./grafana";
import { Progress } from "./progress";
import { Labels, Ranking, Verdicts } from "./runs";

export function Run({ route }: { route: Route }) {
  const [again, setAgain] = useState(0);
  const loaded = useLoaded(() => source.run(route.id), [route.id, again], true);
  return (
    <Ask of={loaded}>
      {(run) => <One key={run.id} run={run} changed={() => setAgain((n) => n + 1)} />}
    </Ask>
  );
}

const methods: Record<Repeat, string> = {
  start: "targets side by side, loaded in slices",
  block: "whole trials, one after the other",
};

function One({ run, changed }: { run: Entry; changed: () => void }) {
  const under = run.state === "running";
  const finding = run.answer || words.title(run);
  useEffect(() => words.titled(finding), [finding]);
  return (
    <>
      <p class="kicker">run {run.id}</p>
      <h1 tabIndex={-1}>{words.title(run)}</h1>
      {run.question && <p class="about">{run.question}</p>}
      {run.answer && <p class="says">{run.answer}</p>}
      <Verdicts run={under ? { ...run, trials: { ...run.trials, missing: 0 } } : run} />
      <p class="doors">
        <a class="act" href={source.report(run.id)} data-report>
          {under ? "Report so far" : "Report"}
        </a>
        <a href={to("compare", "", { b: run.id })}>Compare with another run</a>
        <a href={to("history", "", { suite: run.suite })}>History of this suite</a>
        <a href={to("runs", "", { suite: run.suite })}>Runs of this suite</a>
      </p>
      {under && server && <Progress id={run.id} changed={changed} />}
      <section class="multiples" aria-label="Rankings">
        {(run.ranking ?? []).filter((r) => (r.rows ?? []).length > 0).map((r) => (
          <figure class="figure" key={r.scenario + r.load}>
            <h2>{r.scenario}</h2>
            <Ranking of={r} most={100} />
          </figure>
        ))}
      </section>
      <h2>Conditions</h2>
      <Facts
        of={[
          ["began", words.moment(run.time)],
          ["machine", words.machine(run)],
          ["method", run.repeat && methods[run.repeat]],
          [run.repeat + "s", run.repeat && run.blocks],
          ["trials planned", run.trials.planned],
          ["targets", (run.targets ?? []).join(", ")],
          ["labels", Object.keys(run.labels ?? {}).length > 0 && <Labels of={run.labels} />],
        ].filter(([, value]) => value !== false && value !== undefined) as [string, string][]}
      />
      <h2 class="noprint">Files</h2>
      <p class="doors">
        {source.files(run.id).map(([name, address]) => (
          <a key={name} href={address} download={`${run.id}-${name}`}>
            {name}
          </a>
        ))}
      </p>
      {server && <Boards run={run} />}
      {server && <Change run={run} changed={changed} />}
    </>
  );
}

// Change labels a run, or deletes it after a question.
function Change({ run, changed }: { run: Entry; changed: () => void }) {
  const [wrong, setWrong] = useState("");
  const act = (step: () => Promise<unknown>, then: () => void) => {
    setWrong("");
    return step().then(then, (error: unknown) => setWrong(said(error)));
  };
  const label = (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const [name, value] = [String(form.get("name")), String(form.get("value"))];
    const labels = { ...run.labels, [name]: value };
    if (value === "") {
      delete labels[name];
    }
    void act(() => server!.send("PUT", path("runs", run.id, "labels"), labels), changed);
  };
  const dialog = useRef<HTMLDialogElement>(null);
  const remove = () => {
    dialog.current?.close();
    void act(
      () => server!.send("DELETE", path("runs", run.id), {}),
      () => (location.hash = to("runs")),
    );
  };
  return (
    <section class="noprint">
      <h2>Change</h2>
      {wrong && <Trouble text={wrong} />}
      <form class="filters" onSubmit={label} aria-label="Label this run">
        <label>
          Label
          <input name="name" required maxLength={64} placeholder="branch" />
        </label>
        <label>
          Text (empty removes the label)
          <input name="value" maxLength={256} placeholder="main" />
        </label>
        <button class="act" type="submit">
          Set
        </button>
      </form>
      <button class="act danger" type="button" onClick={() => dialog.current?.showModal()}>
        Delete this run …
      </button>
      <dialog ref={dialog} aria-labelledby="delete-title">
        <h2 id="delete-title">Delete the run {run.id}?</h2>
        <p>Its records, logs and reports are deleted. This cannot be undone.</p>
        <p class="doors">
          <button class="act danger" type="button" onClick={remove}>Delete the run</button>
          <button class="act" type="button" onClick={() => dialog.current?.close()}>
            Keep the run
          </button>
        </p>
      </dialog>
    </section>
  );
}
