// Where documents come from: the API of a server, or files beside the page. Pages ask neither.

import type { Filter } from "./filter";
import type { Choices, Entry, Shelf, Trend } from "./model";
import { Server } from "./server";
import { Site } from "./site";

export interface Sides {
  a: string; // RUN or RUN:TARGET
  b: string;
  control: string;
  allowMismatch: boolean;
}

export interface Group {
  key: string;
  suite: string;
  machine: string; // in words
}

export interface Source {
  kind: "server" | "site";
  // runs gives the newest runs that match, up to a number.
  runs(filter: Filter, most: number): Promise<Shelf>;
  choices(): Promise<Choices>;
  run(id: string): Promise<Entry>;
  // groups are the histories that there are: runs of one suite on one machine.
  groups(): Promise<Group[]>;
  trend(key: string): Promise<Trend>;
  report(id: string): string; // the address of the run's page
  files(id: string): [name: string, address: string][];
}

export const source: Source = document.querySelector('meta[name="prony-source"][content="site"]')
  ? new Site()
  : new Server();

// server is the API, where there is a server.
export const server = source instanceof Server ? source : null;

// site is the files beside the page, where there is no server.
export const site = source instanceof Site ? source : null;
