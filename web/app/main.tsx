// The app: a bar of pages, and the page that the address names. With a server it has those that
// start something; without one, those that read.

import "./app.css";
import { type ComponentType, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as theme from "../src/theme";
import { Compare } from "./pages/compare";
import { History } from "./pages/history";
import { HostPage } from "./pages/host";
import { New } from "./pages/new";
import { Run } from "./pages/run";
import { Runs } from "./pages/runs";
import { here, type Route, to } from "./route";
import { source } from "./source";
import { again } from "./theme";
import { titled } from "./words";

interface Page {
  name: string; // in the address
  title: string; // in the bar; empty: it is reached by links
  shows: ComponentType<{ route: Route }>;
  server?: boolean; // needs one
}

const pages: Page[] = [
  { name: "runs", title: "Runs", shows: Runs },
  { name: "run", title: "", shows: Run },
  { name: "compare", title: "Compare", shows: Compare },
  { name: "history", title: "History", shows: History },
  { name: "new", title: "New run", shows: New, server: true },
  { name: "host", title: "Host", shows: HostPage, server: true },
].filter((p: Page) => !p.server || source.kind === "server");

function useRoute(): Route {
  const [route, set] = useState(here);
  useEffect(() => {
    const changed = () => set(here());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function App() {
  const route = useRoute();
  const page = pages.find((p) => p.name === route.page);
  const main = useRef<HTMLElement>(null);
  const place = route.page + "/" + route.id;
  const first = useRef(place);
  useEffect(() => {
    titled(route.id, page?.title ?? "");
    if (first.current !== place) {
      // A new page is read from its top, by eyes and by screen readers.
      first.current = "";
      scrollTo(0, 0);
      main.current?.focus();
    }
  }, [place]);
  const Shows = page?.shows;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => {
        e.preventDefault(); // the address names the page
        main.current?.focus();
      }}>
        To the content
      </a>
      <Bar at={route.page} />
      <main id="main" tabIndex={-1} ref={main}>
        {Shows ? <Shows route={route} key={place} /> : <Nowhere />}
      </main>
      <footer>
        {source.kind === "site" ? (
          <>
            Made by prony site from records. <a href="feed.xml">News of runs (RSS)</a>
          </>
        ) : (
          "Served by prony serve from records. This page loads nothing from other servers."
        )}
      </footer>
    </>
  );
}

function Bar({ at }: { at: string }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    theme.setUp(button.current, again);
    theme.follow();
  }, []);
  return (
    <header class="bar">
      <a class="brand" href={to("runs")}>
        Prony
      </a>
      <nav aria-label="Pages">
        {pages
          .filter((p) => p.title)
          .map((p) => (
            <a key={p.name} href={to(p.name)} aria-current={p.name === at ? "page" : undefined}>
              {p.title}
            </a>
          ))}
      </nav>
      <button id="theme" type="button" hidden ref={button}>
        <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
          <circle cx="9" cy="9" r="7" fill="none" stroke="currentColor" stroke-width="1.8" />
          <path d="M9 2a7 7 0 0 1 0 14z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}

function Nowhere() {
  return (
    <>
      <h1>There is no such page here</h1>
      <p class="lead">
        {source.kind === "site" && "Some pages need a server: prony serve has them. "}
        <a href={to("runs")}>To the runs</a>
      </p>
    </>
  );
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
