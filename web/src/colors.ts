// Colours of what is drawn. Canvas cannot read CSS variables by itself, so they are read here; the
// palettes live in tokens.css beside the colours of the text.

function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const ink = () => token("--ink");
export const muted = () => token("--muted");
export const rule = () => token("--rule");
export const shade = () => token("--shade");

// faint is a line's colour for an area under or around it.
export function faint(color: string): string {
  return color + "26"; // of six hex digits: 15 % of it
}

const lineColors = 6;

// line gives the k-th of any number of lines a colour and, from the seventh on, a dash of its own:
// six hues are what eyes of all kinds tell apart.
export function line(k: number): { color: string; dash: number[] } {
  const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
  return {
    color: token(`--line-${(k % lineColors) + 1}`),
    dash: dashes[Math.floor(k / lineColors) % dashes.length] ?? [],
  };
}

let targets: string[] = [];

// assign gives each target the line of its place, in all figures of the page.
export function assign(names: string[]): void {
  targets = names;
}

export function target(name: string): { color: string; dash: number[] } {
  return line(Math.max(targets.indexOf(name), 0));
}

// trial gives the k-th of n trials of a target a tint of the target's color.
export function trial(name: string, k: number, n: number): { color: string; dash: number[] } {
  const dashes = [[], [7, 4], [2, 3]];
  const part = n > 1 ? (0.5 * k) / (n - 1) : 0;
  return {
    color: mix(target(name).color, paper(), part),
    dash: dashes[k % dashes.length] ?? [],
  };
}

// gray gives the k-th of n repeats of all targets the tint and dash that its trials have.
export function gray(k: number, n: number): { color: string; dash: number[] } {
  const dashes = [[], [7, 4], [2, 3]];
  const part = n > 1 ? (0.5 * k) / (n - 1) : 0;
  return { color: mix(muted(), paper(), part), dash: dashes[k % dashes.length] ?? [] };
}

const flameColors = 6;

// flame gives the k-th of any number of origins a tint that ink is read on.
export function flame(k: number): string {
  return token(`--flame-${(k % flameColors) + 1}`);
}

export const accent = () => token("--accent");
export const paper = () => token("--paper");
export const card = () => token("--card");

// change goes from shade to the color of what grew or shrank; strength is from -1 to 1.
export function change(strength: number): string {
  return mix(shade(), token(strength > 0 ? "--grew" : "--shrank"), Math.abs(strength));
}

// mix is a color between two of six hex digits.
function mix(from: string, to: string, part: number): string {
  const digits = (color: string, k: number) => parseInt(color.slice(1 + 2 * k, 3 + 2 * k), 16);
  const channel = (k: number) => Math.round(digits(from, k) * (1 - part) + digits(to, k) * part);
  return `rgb(${channel(0)} ${channel(1)} ${channel(2)})`;
}
