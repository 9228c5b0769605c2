// A service is asked by hand, and loaded for some seconds.

import { useState } from "preact/hooks";
import { fieldsOf, NumberField, type Range, useDeed } from "../deed";
import { Badge, Command, Facts, Select, Trouble } from "../parts";
import { Refused } from "../refused";
import { path } from "../server";
import { server } from "../source";
import * as words from "../words";

interface Answer {
  status: number;
  protocol: string;
  headers: [name: string, value: string][] | null;
  body: string;
  bytes: number; // of the whole body
  cut: boolean;
  tookS: number;
}

interface Load {
  ratePerS: number;
  requests: number;
  errors: number;
  p50Ns: number | null; // withheld
  p99Ns: number | null;
  maxNs: number;
  verdict: string;
  findings: string[] | null;
  reproduce: string;
}

const connections: Range = { least: 1, most: 256, usual: 16 }; // of a load
const seconds: Range = { least: 1, most: 10, usual: 5 };
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

function PathField({ paths }: { paths: string[] }) {
  return (
    <label class="path">
      Path
      <input name="path" type="text" list="service-paths" pattern="/.*" autocomplete="off"
        spellcheck={false} title="a path, which begins with /" placeholder={paths[0] ?? "/"} />
    </label>
  );
}

// headersOf reads lines of "Name: value"; a name that comes twice has both values, as RFC 9110
// (5.3) joins them.
function headersOf(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n").filter((l) => l.trim() !== "")) {
    const [, name = "", value = ""] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === "") {
      throw new Refused(`headers: want "Name: value" in each line, not "${line.trim()}"`);
    }
    found[name] = name in found ? `${found[name]}, ${value}` : value;
  }
  return found;
}

export function Requests({ paths }: { paths: string[] }) {
  const [method, setMethod] = useState("GET");
  const deed = useDeed<{ asked: string; answer: Answer }>();
  const send = (e: SubmitEvent) => {
    e.preventDefault();
    const { raw, text } = fieldsOf(e);
    deed.act(async () => {
      const form = {
        method,
        path: text("path") || (paths[0] ?? "/"),
        body: raw("body"),
        headers: headersOf(raw("headers")),
      };
      const answer = await server!.send<Answer>("POST", path("service", "requests"), form);
      return { asked: `${method} ${form.path}`, answer };
    });
  };
  return (
    <section aria-labelledby="requests-title">
      <h3 id="requests-title">Ask it</h3>
      <form class="filters" onSubmit={send} aria-labelledby="requests-title">
        <Select label="Method" value={method} options={methods.map((m) => [m, m])}
          changed={setMethod} />
        <PathField paths={paths} />
        <label class="wide">
          Headers, one in a line
          <textarea name="headers" rows={2} spellcheck={false} placeholder="Accept: text/plain" />
        </label>
        <label class="wide">
          Body
          <textarea name="body" rows={2} spellcheck={false} placeholder="none" />
        </label>
        <button class="act" type="submit" disabled={deed.busy}>
          {deed.busy ? "Waiting …" : "Send"}
        </button>
      </form>
      {deed.wrong && <Trouble text={deed.wrong} />}
      <p class="state" role="status">{deed.value && <StatusLine {...deed.value} />}</p>
      {deed.value && <Answered of={deed.value.answer} />}
    </section>
  );
}

// gradeOf is how bad a status is, where a reader has not said what they want.
function gradeOf(status: number): string {
  return status >= 500 ? "failed" : status >= 400 ? "suspect" : status >= 300 ? "none" : "valid";
}

function StatusLine({ asked, answer }: { asked: string; answer: Answer }) {
  const { protocol, status, tookS, bytes } = answer;
  return (
    <>
      <Badge grade={gradeOf(status)} text={`${protocol} ${status}`} />
      <span>{`${asked}: ${words.amount(tookS * 1e9, "ns")}, ${words.count(bytes, "byte")}`}</span>
    </>
  );
}

function Answered({ of }: { of: Answer }) {
  return (
    <>
      <h4>Headers</h4>
      <Facts of={(of.headers ?? []).map(([name, value]) => [name, <span>{value}</span>])} />
      <h4>{of.body === "" ? "No body" : of.cut ? "Body, its beginning" : "Body"}</h4>
      {of.body && <pre class="log" tabIndex={0} role="region" aria-label="Body">{of.body}</pre>}
    </>
  );
}

interface LoadsProps {
  paths: string[];
  measuring: boolean; // by whomever
  look: () => Promise<void>; // at the service
}

export function Loads({ paths, measuring, look }: LoadsProps) {
  const deed = useDeed<{ of: string; result: Load }>();
  const under = deed.busy || measuring;
  const measure = (e: SubmitEvent) => {
    e.preventDefault();
    const { text, number } = fieldsOf(e);
    const form = {
      path: text("path") || (paths[0] ?? "/"),
      connections: number("connections") ?? connections.usual,
      seconds: number("seconds") ?? seconds.usual,
    };
    const of = `${form.path}, ${words.count(form.connections, "connection")}, ${form.seconds} s`;
    deed.act(async () => {
      const result = await server!.send<Load>("POST", path("service", "loads"), form);
      await look(); // the last look says that it is still measured
      return { of, result };
    });
  };
  return (
    <section aria-labelledby="loads-title">
      <h3 id="loads-title">Load it</h3>
      <form class="filters" onSubmit={measure} aria-labelledby="loads-title">
        <PathField paths={paths} />
        <NumberField label="Connections" name="connections" of={connections} />
        <NumberField label="Seconds" name="seconds" of={seconds} />
        <button class="act" type="submit" disabled={under}>
          {under ? "Measuring …" : "Measure"}
        </button>
      </form>
      {deed.wrong && <Trouble text={deed.wrong} />}
      <div role="status">
        {under && <p class="lead">A load is under way …</p>}
        {!under && deed.value && <Measured {...deed.value} />}
      </div>
    </section>
  );
}

function Measured({ of, result }: { of: string; result: Load }) {
  const latency = (ns: number | null) => words.amount(ns && ns > 0 ? ns : null, "ns");
  return (
    <>
      <p class="state">
        <Badge grade={result.verdict} text={result.verdict} /> <span>{of}</span>
      </p>
      <Facts
        of={[
          ["rate", words.amount(result.ratePerS, "1/s")],
          ["requests", result.requests],
          ["errors", result.errors],
          ["p50", latency(result.p50Ns)],
          ["p99", latency(result.p99Ns)],
          ["slowest", latency(result.maxNs)],
        ]}
      />
      <ul class="findings">{(result.findings ?? []).map((f) => <li key={f}>{f}</li>)}</ul>
      <Command text={result.reproduce} label="The command that does the same" />
    </>
  );
}
