// A small figure of intervals on one axis: a row is a name, a dot with its interval, a value.

export interface StripRow {
  name: string;
  centre: number | null;
  lo: number | null;
  hi: number | null;
  text: string; // the value in words
  range?: string; // its interval in words
  tone: string; // a class, such as "of-1" for the first tier
  dots?: number[]; // single trials or blocks
  href?: string;
}

export interface Axis {
  lo: number;
  hi: number;
  log: boolean;
  mark?: number; // a value with a line of its own
}

// place is where a value stands, in percent of the axis.
function place(x: number, { lo, hi, log }: Axis): number {
  const at = log ? Math.log(x / lo) / Math.log(hi / lo) : (x - lo) / (hi - lo);
  return 100 * Math.min(1, Math.max(0, at));
}

// fromZero is the axis of lengths that are compared.
export function fromZero(rows: StripRow[]): Axis {
  const most = Math.max(0, ...rows.flatMap((r) => [r.centre ?? 0, r.hi ?? 0]));
  return { lo: 0, hi: most > 0 ? most * 1.02 : 1, log: false };
}

// around is an axis of ratios, which has 1 in it.
export function around(rows: StripRow[]): Axis {
  const all = rows
    .flatMap((r) => [r.centre, r.lo, r.hi, ...(r.dots ?? [])])
    .filter((x): x is number => x !== null && x > 0 && Number.isFinite(x));
  const lo = Math.min(1 / 1.02, ...all);
  const hi = Math.max(1.02, ...all);
  const room = Math.max(1.005, (hi / lo) ** 0.04);
  return { lo: lo / room, hi: hi * room, log: true, mark: 1 };
}

interface Props {
  caption: string;
  head: [name: string, axis: string, value: string];
  rows: StripRow[];
  axis: Axis;
  bare?: boolean; // its head is for screen readers alone
}

export function Strip({ caption, head, rows, axis, bare }: Props) {
  return (
    <table class={bare ? "strip small bare" : "strip small"}>
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th scope="col">{head[0]}</th>
          <th scope="col">{head[1]}</th>
          <th scope="col" class="number">
            {head[2]}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((r) => (
          <tr key={r.name} class={"band " + r.tone}>
            <th scope="row">{r.href ? <a href={r.href}>{r.name}</a> : r.name}</th>
            <td class="drawn">
              <Drawn row={r} axis={axis} />
            </td>
            <td class="number">
              {r.text}
              {r.range && <span class="range">{r.range}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Drawn({ row, axis }: { row: StripRow; axis: Axis }) {
  const at = (x: number) => place(x, axis).toFixed(2) + "%";
  const has = row.lo !== null && row.hi !== null && row.centre !== null;
  return (
    <svg aria-hidden="true">
      {axis.mark !== undefined && (
        <line class="mark" x1={at(axis.mark)} x2={at(axis.mark)} y1="0" y2="100%" />
      )}
      {row.dots?.map((x) => (
        <circle class="trial-dot" cx={at(x)} cy="72%" r="2.5" />
      ))}
      {has && (
        <rect
          class="whisker"
          x={at(row.lo ?? 0)}
          width={(place(row.hi ?? 0, axis) - place(row.lo ?? 0, axis)).toFixed(2) + "%"}
          y="calc(50% - 1.5px)"
          height="3"
        />
      )}
      {row.centre !== null && <circle class="center" cx={at(row.centre)} cy="50%" r="5" />}
    </svg>
  );
}
