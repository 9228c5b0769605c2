// The machine that the server is on: is it fit to measure, and what can run on it?

import { Ask, Badge, Facts, useLoaded } from "../parts";
import { path } from "../server";
import { server } from "../source";
import * as words from "../words";
import { Board } from "./grafana";

interface Host {
  doctor: { grade: string; checks: Check[] | null };
  docker: string;
  stack: { name: string; state: string }[] | null;
  grafana: string;
  tools: { name: string; version: string; path?: string }[] | null;
  version: string;
  time: string;
}

interface Check {
  name: string;
  grade: string;
  observed: string;
  expected: string;
  impact: string;
  fix?: string;
}

export function HostPage() {
  const loaded = useLoaded(() => server!.get<Host>(path("host")), []);
  return (
    <>
      <h1 tabIndex={-1}>Host</h1>
      <Ask of={loaded}>{(h) => <Shown h={h} />}</Ask>
    </>
  );
}

function Shown({ h }: { h: Host }) {
  const checks = h.doctor.checks ?? [];
  const wrong = ["unfit", "doubtful"].flatMap((g) => checks.filter((c) => c.grade === g));
  return (
    <>
      <p class="about">
        prony {h.version}, checked {words.moment(h.time)}. Grade of prony doctor:{" "}
        <Badge grade={h.doctor.grade} text={h.doctor.grade} />
      </p>
      <h2>What to do</h2>
      {wrong.length === 0 && <p>Nothing: every check is fine.</p>}
      {wrong.map((c) => (
        <section key={c.name} class="check">
          <h3>
            {c.name} <Badge grade={c.grade} text={c.grade} />
          </h3>
          <p>
            {c.observed}; expected: {c.expected}
          </p>
          <p class="about">{c.impact}</p>
          {c.fix && <p class="hint">→ {c.fix}</p>}
        </section>
      ))}
      <details class="data">
        <summary>{words.count(checks.length - wrong.length, "other check")}</summary>
        <Facts
          of={checks
            .filter((c) => !wrong.includes(c))
            .map((c): [string, string] => [c.name, `${c.grade}: ${c.observed}`])}
        />
      </details>
      <h2>Tools</h2>
      <Facts
        of={[
          ...(h.tools ?? []).map((t): [string, string] => [t.name, t.version]),
          ["containers", h.docker || "can be used"],
          ...(h.stack ?? []).map((s): [string, string] => [s.name, s.state]),
        ]}
      />
      {h.grafana && <Watched grafana={h.grafana} />}
    </>
  );
}

const newest = 5; // runs that are led to

// Watched leads to what Grafana has of this machine during the newest runs.
function Watched({ grafana }: { grafana: string }) {
  const loaded = useLoaded(() => server!.runs({}, newest), []);
  return (
    <section class="noprint">
      <h2>In Grafana</h2>
      <p class="about">
        <a href={grafana} target="_blank" rel="noopener">{grafana}</a> has this machine during
      </p>
      <Ask of={loaded}>
        {({ runs }) => (
          <ul>
            {runs.map((run) => (
              <li key={run.id}>
                <Board grafana={grafana} run={run} uid="prony-host">
                  {`${run.suite || run.id}, ${words.moment(run.time)}`}
                </Board>
              </li>
            ))}
          </ul>
        )}
      </Ask>
    </section>
  );
}
