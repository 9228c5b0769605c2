// Where the reader is: after the # of the address, because a page from a file has no other paths.
// "#/compare?a=X&b=Y" is the page compare with two parameters.

export interface Route {
  page: string;
  id: string; // what follows the page's name; empty: none
  query: URLSearchParams;
}

export function here(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/");
  return { page: page || "runs", id: unescape(rest.join("/")), query: new URLSearchParams(query) };
}

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

export function to(page: string, id = "", query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${page}${id && "/" + encodeURIComponent(id)}${text && "?" + text}`;
}

// replace changes the address without a step back in the reader's history, as filters do.
export function replace(hash: string): void {
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
