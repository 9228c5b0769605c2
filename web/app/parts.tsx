// What several pages are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refused } from "./refused";

export type Loaded<T> = { value: T } | { error: string } | null;

// useLoaded asks for a document when what it depends on has changed; an answer that comes after the
// next question is dropped. With keep, what was there stays until then: a field in it keeps its
// focus.
export function useLoaded<T>(ask: () => Promise<T>, on: unknown[], keep = false): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>(null);
  useEffect(() => {
    let wanted = true;
    set((before) => (keep ? before : null));
    ask().then(
      (value) => wanted && set({ value }),
      (error: unknown) => wanted && set({ error: said(error) }),
    );
    return () => {
      wanted = false;
    };
  }, on);
  return loaded;
}

// useSettled gives a text once it has not changed for a moment, so that a list is not requested for
// every letter.
export function useSettled(text: string): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

export function said(error: unknown): string {
  if (error instanceof Refused) {
    return error.message;
  }
  return `This page has failed: ${error instanceof Error ? error.message : String(error)}`;
}

// Ask shows a document, or that it is still to come, or why there is none.
export function Ask<T>(props: { of: Loaded<T>; children: (value: T) => ComponentChildren }) {
  if (props.of === null) {
    return <p class="lead" role="status">Loading …</p>;
  }
  if ("error" in props.of) {
    return <Trouble text={props.of.error} />;
  }
  return <>{props.children(props.of.value)}</>;
}

export function Trouble({ text }: { text: string }) {
  const [first = "", ...rest] = text.split("\n");
  return (
    <div class="banner" role="alert">
      <p>{first}</p>
      {rest.map((line) => (
        <div class="line">{line}</div>
      ))}
    </div>
  );
}

export function Badge({ grade, text }: { grade: string; text: string }) {
  return <span class={"badge " + grade.toLowerCase()}>{text}</span>;
}

interface SelectProps {
  label: string;
  value: string;
  options: [value: string, text: string][];
  none?: string; // what the empty value is called; undefined: there is none
  changed: (value: string) => void;
}

export function Select({ label, value, options, none, changed }: SelectProps) {
  const known = value === "" || options.some(([v]) => v === value);
  const all: [string, string][] = known ? options : [[value, value], ...options];
  return (
    <label>
      {label}
      <select value={value} onChange={(e) => changed(e.currentTarget.value)}>
        {none !== undefined && <option value="">{none}</option>}
        {all.map(([v, text]) => (
          <option key={v} value={v}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

// Command is a line to paste, with a button that copies it.
export function Command({ text, label }: { text: string; label: string }) {
  const [copied, set] = useState("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      set("Copied");
    } catch {
      set("Select and press Ctrl+C"); // a page from a file may be refused
    }
    setTimeout(() => set("Copy"), 2500);
  };
  return (
    <div class="command">
      <code tabIndex={0} role="region" aria-label={label}>
        {text}
      </code>
      <button class="copy" type="button" aria-live="polite" onClick={() => void copy()}>
        {copied}
      </button>
    </div>
  );
}

// Box lets what is wider than the screen be scrolled, by keys too.
export function Box({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="box" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

export function Facts({ of }: { of: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== "" && value !== undefined && value !== null)
        .map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
    </dl>
  );
}
