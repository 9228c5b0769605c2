// The way back from a report to the app of prony serve, or of a static site, that shows it.

// Addresses of reports and comparisons; what comes before is the address of the app.
const shown = /^(.*\/)(api\/v1\/(runs\/[^/]+|compare)\/page|runs\/[^/]+\/[^/]+\.html)$/;

export function home(): void {
  const link = document.querySelector<HTMLAnchorElement>("#home");
  const root = shown.exec(location.pathname)?.[1];
  if (link && root && location.protocol !== "file:") {
    link.href = `${root}#/runs`;
    link.hidden = false;
  }
}
