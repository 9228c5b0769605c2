// What pages ask for again and again, and what their forms send.

import { useEffect, useState } from "preact/hooks";
import { said } from "./parts";

export type Range = { least: number; most?: number; usual: number; step?: "any" };

// useLooks looks at once when it is on, and again and again if that is wanted. It looks only while
// somebody can see the page, and never twice at a time: a server that is slow, or that measures,
// gets no heap of questions.
export function useLooks(
  look: () => Promise<void>,
  everyMs: number,
  again: boolean,
  on = true,
): void {
  useEffect(() => {
    let timer = 0;
    let under = false;
    let looked = false;
    let left = false;
    const step = async () => {
      clearTimeout(timer);
      const done = looked && !again;
      if (!on || done || under || left || document.visibilityState !== "visible") {
        return;
      }
      under = looked = true;
      await look();
      under = false;
      if (again && !left) {
        timer = setTimeout(() => void step(), everyMs);
      }
    };
    void step();
    document.addEventListener("visibilitychange", step);
    return () => {
      left = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", step);
    };
  }, [again, on]);
}

// useDeed is what a button sends, once at a time, and what came of it.
export function useDeed<T>() {
  const [deed, set] = useState({ busy: false, wrong: "", value: null as T | null });
  const act = (step: () => Promise<T>) => {
    set((before) => ({ ...before, busy: true, wrong: "" }));
    step().then(
      (value) => set({ busy: false, wrong: "", value }),
      (error: unknown) => set({ busy: false, wrong: said(error), value: null }),
    );
  };
  return { ...deed, act };
}

// fieldsOf reads the form that was sent. What is left empty is as its hint says.
export function fieldsOf(e: SubmitEvent) {
  const data = new FormData(e.currentTarget as HTMLFormElement);
  const raw = (name: string) => String(data.get(name) ?? "");
  const text = (name: string) => raw(name).trim();
  const number = (name: string) => (text(name) === "" ? undefined : Number(text(name)));
  return { raw, text, number };
}

export function NumberField({ label, name, of }: { label: string; name: string; of: Range }) {
  return (
    <label>
      {label}
      <input name={name} type="number" min={of.least} max={of.most} step={of.step}
        placeholder={String(of.usual)} />
    </label>
  );
}
