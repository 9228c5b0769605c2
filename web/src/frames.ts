// Flame graphs as trees: how they come out of the page's data, how two become one, and where their
// frames lie. Nothing here draws.

import type { Flames, Profile } from "./data";

// Frame is a function below those that called it. Shares are of the whole profile; in a difference
// b is the profile that is shown and a the one that it is compared with, else both are the same.
export interface Frame {
  name: string;
  short: string;
  a: number;
  b: number;
  selfA: number;
  selfB: number;
  parent: Frame | null;
  depth: number;
  children: Frame[];
}

// decode makes a tree of a profile's numbers. Its total is in the profile's unit.
export function decode(flames: Flames, p: Profile): { root: Frame; total: number } {
  const total = p.frames[1] || 1;
  let at = 0;
  const next = (parent: Frame | null): Frame => {
    const [name = 0, value = 0, children = 0] = p.frames.slice(at, at + 3);
    at += 3;
    const whole = flames.names[name] ?? "";
    const b = value / total;
    const f = make(whole, flames.shorts[name] || whole, parent);
    for (let k = 0; k < children; k++) {
      f.children.push(next(f));
    }
    const self = b - f.children.reduce((sum, c) => sum + c.b, 0);
    f.a = f.b = b;
    f.selfA = f.selfB = self > 1e-12 ? self : 0; // what subtraction leaves is nothing
    return f;
  };
  return { root: next(null), total };
}

function make(name: string, short: string, parent: Frame | null): Frame {
  const depth = parent ? parent.depth + 1 : 0;
  return { name, short, a: 0, b: 0, selfA: 0, selfB: 0, parent, depth, children: [] };
}

// difference is two trees as one, frames matched by name below the same callers.
export function difference(before: Frame, after: Frame): Frame {
  const join = (a: Frame | null, b: Frame | null, parent: Frame | null): Frame => {
    const f = make((b ?? a)?.name ?? "", (b ?? a)?.short ?? "", parent);
    [f.a, f.selfA] = [a?.a ?? 0, a?.selfA ?? 0];
    [f.b, f.selfB] = [b?.b ?? 0, b?.selfB ?? 0];
    const left = new Map((a?.children ?? []).map((c) => [c.name, c]));
    for (const c of b?.children ?? []) {
      f.children.push(join(left.get(c.name) ?? null, c, f));
      left.delete(c.name);
    }
    left.forEach((c) => f.children.push(join(c, null, f)));
    f.children.sort((x, y) => order(x.name, y.name));
    return f;
  };
  return join(before, after, null);
}

// small is what internal/observe/profile calls the frame that all too small ones are merged into.
const small = "(small)";

function order(x: string, y: string): number {
  if (x === small || y === small) {
    return Number(x === small) - Number(y === small);
  }
  return x < y ? -1 : Number(x > y);
}

// width is a frame's share of the picture: in a difference the mean of both, so that what has gone
// is still seen.
export function width(f: Frame): number {
  return (f.a + f.b) / 2;
}

// Box is where a frame lies; x and w are shares of the picture.
export interface Box {
  frame: Frame;
  x: number;
  w: number;
}

// layout places a frame over the whole width, its callers above it, what it calls below it. What is
// narrower than least is left out.
export function layout(zoom: Frame, least: number): Box[][] {
  const rows: Box[][] = [];
  for (let f: Frame | null = zoom.parent; f; f = f.parent) {
    rows.unshift([{ frame: f, x: 0, w: 1 }]);
  }
  const whole = width(zoom) || 1;
  const place = (frame: Frame, x: number) => {
    const w = width(frame) / whole;
    if (w < least) {
      return;
    }
    (rows[frame.depth] ??= []).push({ frame, x, w });
    for (const c of frame.children) {
      place(c, x);
      x += width(c) / whole;
    }
  };
  place(zoom, 0);
  return rows;
}

// Found is what a search found. A stack counts once, however often what is sought is in it.
export interface Found {
  frames: Set<Frame>;
  a: number;
  b: number;
}

export function search(root: Frame, text: string): Found {
  const found: Found = { frames: new Set(), a: 0, b: 0 };
  const sought = text.trim().toLowerCase();
  const look = (f: Frame, counted: boolean) => {
    const hit = f.name.toLowerCase().includes(sought);
    if (hit) {
      found.frames.add(f);
    }
    if (hit && !counted) {
      found.a += f.a;
      found.b += f.b;
    }
    f.children.forEach((c) => look(c, counted || hit));
  };
  if (sought !== "") {
    look(root, false);
  }
  return found;
}

// Change is what became of a function itself, wherever it was called.
export interface Change {
  name: string;
  a: number;
  b: number;
}

export function changes(root: Frame): Change[] {
  const all = new Map<string, Change>();
  const add = (f: Frame) => {
    const c = all.get(f.name) ?? { name: f.short, a: 0, b: 0 };
    c.a += f.selfA;
    c.b += f.selfB;
    all.set(f.name, c);
    f.children.forEach(add);
  };
  add(root);
  all.delete(small);
  return [...all.values()];
}

// error is the standard error of b - a that the numbers of samples alone bring, taking the samples
// for independent: sqrt(a(1-a)/nA + b(1-b)/nB), as in
// internal/observe/profile; null: not known.
export function error(a: number, b: number, nA: number, nB: number): number | null {
  if (nA <= 0 || nB <= 0) {
    return null;
  }
  const variance = (p: number, n: number) => Math.max(p * (1 - p), 0) / n;
  return Math.sqrt(variance(a, nA) + variance(b, nB));
}

// origin is where a function is from: its package or library, of scripts the first folder.
export function origin(name: string): string {
  if (name.endsWith("[k]")) {
    return "kernel";
  }
  const file = / \(([^()]+)\)$/.exec(name)?.[1];
  if (file) {
    return file.split(/[/:]/)[0] ?? file;
  }
  const slash = name.lastIndexOf("/", name.search(/[[(<]|$/));
  const dot = name.indexOf(".", slash + 1);
  if (slash >= 0 && dot > 0) {
    return name.slice(0, dot);
  }
  if (name.includes("::")) {
    return name.slice(0, name.indexOf("::"));
  }
  const parts = name.split(".");
  return parts.slice(0, Math.min(2, parts.length - 1)).join(".");
}

// hash is FNV-1a of 32 bits.
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return h;
}
