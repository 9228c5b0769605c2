// The API of prony serve (internal/server/openapi.yaml).

import type { Filter } from "./filter";
import type { Choices, Comparison, Entry, Shelf, Trend } from "./model";
import type { Gate } from "./pages/gate";
import { Refused } from "./refused";
import type { Group, Sides, Source } from "./source";

const root = "/api/v1";
const atOnce = 200; // runs that one request asks for

// path makes an address of parts that may hold any character.
export function path(...parts: string[]): string {
  return [root, ...parts.map(encodeURIComponent)].join("/");
}

function asked(query: Record<string, string>): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return given.length > 0 ? "?" + new URLSearchParams(given).toString() : "";
}

function sidesOf({ a, b, control, allowMismatch }: Sides, limit = ""): string {
  return asked({ a, b, control, allowMismatch: allowMismatch ? "true" : "", limit });
}

// wrong is what an answer that is no success says: the API's {"error": "…"}, or its text.
async function wrong(answer: Response): Promise<Refused> {
  const text = await answer.text();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") {
      return new Refused(error, answer.status);
    }
    const said = (error as { message?: unknown } | undefined)?.message;
    if (typeof said === "string") {
      return new Refused(said, answer.status);
    }
  } catch {
    // no JSON: the text itself
  }
  return new Refused(text.trim() || `The server answered ${answer.status}.`, answer.status);
}

async function ask(address: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...init });
  } catch {
    throw new Refused("The server does not answer. Is prony serve still running?");
  }
  if (!answer.ok) {
    throw await wrong(answer);
  }
  return answer;
}

export class Server implements Source {
  readonly kind = "server";

  async get<T>(address: string): Promise<T> {
    return (await (await ask(address)).json()) as T;
  }

  async text(address: string): Promise<string> {
    return (await ask(address)).text();
  }

  // send changes something; the API takes nothing but JSON.
  async send<T>(method: "POST" | "PUT" | "DELETE", address: string, body: unknown): Promise<T> {
    const answer = await ask(address, {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body ?? {}),
    });
    const text = await answer.text();
    return (text ? JSON.parse(text) : null) as T;
  }

  async runs(filter: Filter, most: number): Promise<Shelf> {
    const found: Entry[] = [];
    let cursor = "";
    for (;;) {
      const limit = String(Math.min(atOnce, most - found.length));
      const part = await this.get<Shelf & { next?: string }>(
        path("runs") + asked({ ...filter, limit, cursor }),
      );
      found.push(...part.runs);
      cursor = part.next ?? "";
      if (found.length >= most || cursor === "") {
        return { ...part, runs: found };
      }
    }
  }

  choices(): Promise<Choices> {
    return this.get(path("choices"));
  }

  run(id: string): Promise<Entry> {
    return this.get(path("runs", id));
  }

  compare(sides: Sides): Promise<Comparison> {
    return this.get(path("compare") + sidesOf(sides));
  }

  // gate judges a comparison, too: by how much B may be worse than A.
  gate(sides: Sides, limit: string): Promise<Gate> {
    return this.get(path("compare") + sidesOf(sides, limit));
  }

  // comparison is the address of the comparison's page.
  comparison(sides: Sides, limit: string): string {
    return path("compare", "page") + sidesOf(sides, limit);
  }

  async groups(): Promise<Group[]> {
    const { suites } = await this.choices();
    return suites.map((suite) => ({ key: suite, suite, machine: "" }));
  }

  trend(key: string): Promise<Trend> {
    return this.get(path("trend") + asked({ suite: key }));
  }

  report(id: string): string {
    return path("runs", id, "page");
  }

  files(id: string): [string, string][] {
    return [
      ["trials.ndjson", path("runs", id, "trials")],
      ["report.json", path("runs", id, "report")],
      ["prony.log", path("runs", id, "log")],
    ];
  }
}
