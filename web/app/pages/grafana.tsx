// Ways into the stack's Grafana, for the time of a run. Only a server's pages have them.

import { useState } from "preact/hooks";
import type { Entry } from "../model";
import { Ask, useLoaded } from "../parts";
import { path } from "../server";
import { server } from "../source";

// Those of deploy/helm/prony/dashboards. A test of home/dashboardtest holds them together.
const boards: [uid: string, title: string][] = [
  ["prony-run", "Run overview"],
  ["prony-red", "Services"],
  ["prony-jvm", "JVM"],
  ["prony-generator", "Generator health"],
  ["prony-host", "Host"],
  ["prony-watching", "Cost of watching"],
];

const minute = 60_000; // ms: what is on an edge is to be seen

// during is a board's address with the time of a run, which is until now while it goes on.
function during(grafana: string, uid: string, run: Entry): string {
  const over = run.state === "running" ? undefined : run.ended;
  const query = new URLSearchParams({
    from: String(Date.parse(run.time) - minute),
    to: String((over ? Date.parse(over) : Date.now()) + minute),
    "var-run": run.id,
  });
  return `${grafana}/d/${uid}?${query.toString()}`;
}

interface BoardProps {
  grafana: string; // where it answers
  run: Entry;
  uid: string;
  children: string;
}

export function Board({ grafana, run, uid, children }: BoardProps) {
  return (
    <a href={during(grafana, uid, run)} target="_blank" rel="noopener">
      {children}
    </a>
  );
}

// Boards leads to all of them. Where Grafana answers the host's document says, for which the
// machine is looked at: it is asked for when somebody wants it, and not beside a run that measures.
export function Boards({ run }: { run: Entry }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="data noprint" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>In Grafana</summary>
      {open && <Found run={run} />}
    </details>
  );
}

function Found({ run }: { run: Entry }) {
  const loaded = useLoaded(() => server!.get<{ grafana: string }>(path("host")), []);
  return (
    <Ask of={loaded}>
      {({ grafana }) =>
        grafana ? (
          <>
            <p class="about">It has what a run with --telemetry=lgtm sent to it.</p>
            <p class="doors">
              {boards.map(([uid, title]) => (
                <Board key={uid} grafana={grafana} run={run} uid={uid}>{title}</Board>
              ))}
            </p>
          </>
        ) : (
          <p class="about">
            It does not run here: prony stack up starts it, and prony run --telemetry=lgtm sends to
            it.
          </p>
        )
      }
    </Ask>
  );
}
