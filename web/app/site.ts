// Files beside the page. A page from a file may not fetch, but it may load scripts: each document
// is a script that hands it over, prony.put(name, document).

import { type Filter, matches, offered } from "./filter";
import type { Choices, Entry, Shelf, Trend, Written } from "./model";
import type { Group, Source } from "./source";
import { Refused } from "./refused";

interface Index {
  total: number;
  parts: number; // files data/runs-1.js and so on, each with the next of the older runs
  runs: Entry[];
  groups: Group[];
}

interface Given {
  put(name: string, document: unknown): void;
}

declare global {
  interface Window {
    prony?: Given;
  }
}

const documents = new Map<string, unknown>();
const loads = new Map<string, Promise<void>>();

window.prony = { put: (name, document) => documents.set(name, document) };

// load runs a script once.
function load(address: string): Promise<void> {
  const before = loads.get(address);
  if (before) {
    return before;
  }
  const done = new Promise<void>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve();
    script.onerror = () => {
      loads.delete(address);
      reject(new Refused(`There is no ${address} beside this page.`));
    };
    document.head.append(script);
  });
  loads.set(address, done);
  return done;
}

async function take<T>(name: string): Promise<T> {
  await load(name + ".js");
  const found = documents.get(name);
  if (found === undefined) {
    throw new Refused(`${name}.js beside this page is not what prony site wrote.`);
  }
  return found as T;
}

export class Site implements Source {
  readonly kind = "site";
  private whole: Promise<Entry[]> | null = null;

  async runs(filter: Filter, most: number): Promise<Shelf> {
    const index = await take<Index>("data/index");
    const filtered = Object.keys(filter).length > 0;
    if (!filtered && most <= index.runs.length) {
      return { runs: index.runs.slice(0, most), total: index.total, all: index.total };
    }
    const found = (await this.every()).filter((run) => matches(run, filter));
    return { runs: found.slice(0, most), total: found.length, all: index.total };
  }

  private every(): Promise<Entry[]> {
    this.whole ??= this.parts();
    return this.whole;
  }

  private async parts(): Promise<Entry[]> {
    const index = await take<Index>("data/index");
    const names = Array.from({ length: index.parts }, (_, k) => `data/runs-${k + 1}`);
    const parts = await Promise.all(names.map((name) => take<Entry[]>(name)));
    return [...index.runs, ...parts.flat()];
  }

  async choices(): Promise<Choices> {
    const runs = await this.every();
    const labels = (r: Entry) => Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`);
    return {
      suites: offered(runs, (r) => [r.suite]),
      targets: offered(runs, (r) => r.targets ?? []),
      labels: offered(runs, labels),
      machines: [...new Map(runs.map((r) => [r.machine.key, r.machine])).values()],
    };
  }

  async run(id: string): Promise<Entry> {
    const { runs } = await take<Index>("data/index");
    const is = (r: Entry) => r.id === id;
    const found = runs.find(is) ?? (await this.every()).find(is);
    if (!found) {
      throw new Refused(`There is no run ${id} here.`);
    }
    return found;
  }

  // pairs are the comparisons that were written with the site, those of the newest runs first.
  pairs(): Promise<Written[]> {
    return take("data/pairs");
  }

  comparison({ a, b }: Written): string {
    return `runs/${encodeURIComponent(b)}/compare-${encodeURIComponent(a)}.html`;
  }

  async groups(): Promise<Group[]> {
    return (await take<Index>("data/index")).groups;
  }

  trend(key: string): Promise<Trend> {
    return take(`data/trend-${key}`);
  }

  report(id: string): string {
    return `runs/${encodeURIComponent(id)}/report.html`;
  }

  files(id: string): [string, string][] {
    const names = ["trials.ndjson", "run.json", "report.json"];
    return names.map((name) => [name, `runs/${encodeURIComponent(id)}/${name}`]);
  }
}
