// A run under way: how far it is, what it does now, what it said, and how to stop it.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow, left, type Ratio, repeatOf, repeatsOf, type State, type Tick } from "../follow";
import { Badge, Box, said, Trouble } from "../parts";
import { path } from "../server";
import { server } from "../source";
import * as words from "../words";
import { Course } from "./course";

// Progress calls changed when there is one record more, and when the run has ended, or may have.
export function Progress({ id, changed }: { id: string; changed: () => void }) {
  const [state, setState] = useState<State | null>(null);
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    let records = -1;
    return follow(id, (s, lost) => {
      setState(s);
      setBroken(lost);
      if (s.outcome || (records >= 0 && s.ended > records)) {
        changed();
      }
      records = s.ended;
    }, changed);
  }, [id]);
  if (!state) {
    return <p class="lead" role="status">Waiting for the run …</p>;
  }
  return (
    <section class="under-way" aria-label="The run under way">
      <h2>Under way</h2>
      {broken && <p class="lead" role="status">The connection is lost. Reconnecting …</p>}
      <How s={state} />
      <Now s={state} />
      <Ratios s={state} />
      <Course s={state} />
      <Order s={state} />
      <Stop id={id} starts={state.repeat === "start"} />
      <Followed title="Log of the run" text={state.said.join("\n")} />
      {state.trial && <ServiceLog id={id} trial={state.trial} />}
    </section>
  );
}

function How({ s }: { s: State }) {
  const [least, most] = left(s) ?? [0, 0];
  const time =
    most > 0 ? `, ${words.lasting(least)} to ${words.lasting(most)} left` : "";
  return (
    <>
      <progress aria-label="Trials that have a record" value={s.ended} max={s.total || 1} />
      <p role="status">
        {repeatOf(s) > 0 && `${s.repeat} ${repeatOf(s)} of ${repeatsOf(s)}, `}
        {s.total > 0 ? `${s.ended} of ${words.count(s.total, "trial")}` : `${s.ended} trials`}
        {" done"}
        {time}
      </p>
    </>
  );
}

function Now({ s }: { s: State }) {
  if (!s.trial) {
    return <p class="lead">Between {s.repeat === "start" ? "starts" : "trials"}.</p>;
  }
  const tick = s.ticks[s.ticks.length - 1];
  const expected = s.expectedNs > 0 ? ` of ${words.lasting(s.expectedNs / 1e9)}` : "";
  return (
    <div class="now">
      <p>
        <strong>{s.rounds > 0 ? "all targets in turns" : s.trial}</strong>:{" "}
        {s.step || "begins"},{" "}
        {words.lasting((s.now - s.stepBegun) / 1e3)}
        {expected}
      </p>
      {s.rounds > 0 && (
        <>
          <progress aria-label="Rounds of slices" value={s.round} max={s.rounds} />
          <p>
            round {s.round} of {s.rounds}
          </p>
        </>
      )}
      {tick && (
        <div class="dials">
          <Dial name="rate" text={words.amount(tick.perS, "1/s")} of={s.ticks} at={(t) => t.perS} />
          <Dial name="p50" text={latency(tick.p50Ns)} of={s.ticks} at={(t) => t.p50Ns} />
          <Dial name="p99" text={latency(tick.p99Ns)} of={s.ticks} at={(t) => t.p99Ns} />
          {tick.errors > 0 && <p class="says worse">{words.count(tick.errors, "error")}</p>}
        </div>
      )}
    </div>
  );
}

// Ratios are the answers so far, the interval of each drawn about the line of no difference.
function Ratios({ s }: { s: State }) {
  if (s.ratios.length === 0) {
    return null;
  }
  const scenarios = new Set(s.ratios.map((r) => r.scenario)).size;
  const most = Math.max(...s.ratios.flatMap((r) => [r.lo, r.hi].map((x) => Math.abs(Math.log(x)))));
  return (
    <>
      <h3>Differences so far</h3>
      <p class="about">
        From slices, against {s.ratios[0]!.baseline}, after{" "}
        {words.count(Math.max(...s.ratios.map((r) => r.starts)), "start")}. Each 95 % interval
        stays valid whenever you stop the run. At its planned end, the report has narrower
        intervals.
      </p>
      <Box label="Differences so far">
        <table class="strip small">
          <thead>
            <tr>
              <th scope="col">target</th>
              <th scope="col">0 is in the middle</th>
              <th scope="col" class="number">difference</th>
            </tr>
          </thead>
          <tbody>
            {s.ratios.map((r) => (
              <tr key={r.scenario + r.target + r.metric} class="band of-0">
                <th scope="row">
                  {r.target}{" "}
                  <span class="range">
                    {words.metric("", r.metric)}
                    {scenarios > 1 && `, ${r.scenario}`}
                  </span>
                </th>
                <td class="drawn">
                  <Interval r={r} most={most} />
                </td>
                <td class="number">
                  {words.change(r.center)}{" "}
                  <span class="range">
                    {words.change(r.lo)} to {words.change(r.hi)}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Box>
    </>
  );
}

function Interval({ r, most }: { r: Ratio; most: number }) {
  const at = (x: number) => 50 + (48 * Math.log(x)) / (most || 1);
  return (
    <svg aria-hidden="true">
      <line class="mark" x1="50%" x2="50%" y1="0" y2="100%" />
      <rect class="whisker" x={at(r.lo).toFixed(2) + "%"} y="calc(50% - 1.5px)" height="3"
        width={(at(r.hi) - at(r.lo)).toFixed(2) + "%"} />
      <circle class="center" cx={at(r.center).toFixed(2) + "%"} cy="50%" r="5" />
    </svg>
  );
}

function latency(ns: number): string {
  return words.amount(ns > 0 ? ns : null, "ns");
}

interface DialProps {
  name: string;
  text: string;
  of: Tick[];
  at: (t: Tick) => number;
}

// Dial is a value as it is now, with where it came from, from zero. Where there was no value, as
// there is no p99 in a warm-up, the line has a gap.
function Dial({ name, text, of, at }: DialProps) {
  const values = of.map(at);
  const most = Math.max(...values, 1);
  const x = (k: number) => ((100 * k) / Math.max(1, values.length - 1)).toFixed(1);
  const lines: string[][] = [[]];
  values.forEach((v, k) => {
    if (v > 0) {
      lines[lines.length - 1]?.push(`${x(k)},${(38 - (36 * v) / most).toFixed(1)}`);
    } else {
      lines.push([]);
    }
  });
  return (
    <div class="dial">
      <span class="name">{name}</span>
      <span class="value">{text}</span>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
        {lines.filter((l) => l.length > 1).map((l) => (
          <polyline key={l[0]} points={l.join(" ")} />
        ))}
      </svg>
    </div>
  );
}

// Order is all trials in the order in which they run: what is done, what is to come.
function Order({ s }: { s: State }) {
  if (s.planned.length === 0) {
    return null;
  }
  return (
    <details class="data" open={s.planned.length <= 40}>
      <summary>Order of trials</summary>
      <ol class="order">
        {s.planned.map((p) => (
          <li key={p.trial} aria-current={p.trial === s.trial ? "step" : undefined}>
            <span>{s.repeat} {p.block}</span> {p.row}{" "}
            {s.grades.has(p.trial) && (
              <Badge {...words.outcome(s.grades.get(p.trial) ?? "")} />
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

function Stop({ id, starts }: { id: string; starts: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [wrong, setWrong] = useState("");
  const [asked, setAsked] = useState(false);
  const stop = (e: SubmitEvent) => {
    e.preventDefault();
    const reason = String(new FormData(e.currentTarget as HTMLFormElement).get("reason") ?? "");
    dialog.current?.close();
    setAsked(true);
    setWrong("");
    server!.send("POST", path("runs", id, "stop"), { reason }).catch((error: unknown) => {
      setAsked(false);
      setWrong(said(error));
    });
  };
  return (
    <div class="noprint">
      {wrong && <Trouble text={wrong} />}
      <button class="act danger" type="button" disabled={asked}
        onClick={() => dialog.current?.showModal()}>
        {asked ? "Stopping …" : "Stop the run …"}
      </button>
      <dialog ref={dialog} aria-labelledby="stop-title">
        <form onSubmit={stop}>
          <h2 id="stop-title">Stop the run?</h2>
          <p>
            {starts
              ? "The start under way is lost. The report uses the whole starts before it."
              : "The trial under way is lost. Trials that have a record stay."}{" "}
            You can continue the run later with prony run --resume.
          </p>
          <label class="field">
            Reason, for all reports of the run
            <input name="reason" maxLength={200} />
          </label>
          <p class="doors">
            <button class="act danger" type="submit">Stop the run</button>
            <button class="act" type="button" onClick={() => dialog.current?.close()}>
              Keep running
            </button>
          </p>
        </form>
      </dialog>
    </div>
  );
}

// Followed is a text that grows at its end, and is kept in sight there unless somebody reads above.
function Followed({ title, text }: { title: string; text: string }) {
  const box = useRef<HTMLPreElement>(null);
  const end = useRef(true);
  useEffect(() => {
    if (box.current && end.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [text]);
  return (
    <>
      <h3>{title}</h3>
      <pre class="log" tabIndex={0} role="region" aria-label={title} ref={box}
        onScroll={(e) => {
          const at = e.currentTarget;
          end.current = at.scrollHeight - at.scrollTop - at.clientHeight < 24;
        }}>
        {text}
      </pre>
    </>
  );
}

const lookEvery = 2000; // ms, for more of a log
const keptText = 64 << 10;

function ServiceLog({ id, trial }: { id: string; trial: string }) {
  const [shown, setShown] = useState(false);
  const [text, setText] = useState("");
  useEffect(() => {
    if (!shown) {
      return undefined;
    }
    const look = () =>
      server!.text(path("runs", id, "logs", trial)).then(
        (all) => setText(all.slice(-keptText)),
        (error: unknown) => setText(said(error)),
      );
    void look();
    const timer = setInterval(() => void look(), lookEvery);
    return () => clearInterval(timer);
  }, [shown, id, trial]);
  return (
    <>
      <button class="act" type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
        {shown ? "Hide" : "Follow"} the service's log
      </button>
      {shown && (
        <Box label="Log">
          <Followed title={"Log of " + trial} text={text} />
        </Box>
      )}
    </>
  );
}
