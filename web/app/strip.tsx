// A small figure of intervals on one axis: a row is a name, a dot with its interval, a value.

export interface StripRow {
  name: string;
  center: number | null;
  lo: number | null;
  hi: number | null;
  text: string; // the value in words
  tone: string; // a class, such as "of-1" for the first tier
  href?: string;
}

// place is where a value stands, in percent of an axis from zero to its end.
function place(x: number, end: number): number {
  return 100 * Math.min(1, Math.max(0, x / end));
}

// endOf is the end of an axis from zero that has room for all rows.
export function endOf(rows: { center: number | null; hi: number | null }[]): number {
  const most = Math.max(0, ...rows.flatMap((r) => [r.center ?? 0, r.hi ?? 0]));
  return most > 0 ? most * 1.02 : 1;
}

interface Props {
  caption: string;
  head: [name: string, axis: string, value: string];
  rows: StripRow[];
  bare?: boolean; // its head is for screen readers alone
  end?: number; // of the axis; absent: of its own rows
  print?: (x: number) => string; // a tick; absent: there are none
}

// mostTicks is how many ticks an axis has at most, with that of zero.
const mostTicks = 3;

// ticks are round values from zero to the end of an axis.
function ticks(end: number): number[] {
  const rough = end / mostTicks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10);
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, k) => k * step);
}

export function Strip({ caption, head, rows, bare, end: given, print }: Props) {
  const end = given ?? endOf(rows);
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
              <Drawn row={r} end={end} />
            </td>
            <td class="number">
              {r.text}
            </td>
          </tr>
        ))}
      </tbody>
      {print && (
        <tfoot aria-hidden="true">
          <tr>
            <td />
            <td class="drawn">
              <svg class="ticks">
                {ticks(end).map((x) => (
                  <text key={x} x={place(x, end).toFixed(2) + "%"} y="12"
                    text-anchor={x === 0 ? "start" : place(x, end) > 90 ? "end" : "middle"}>
                    {print(x)}
                  </text>
                ))}
              </svg>
            </td>
            <td />
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function Drawn({ row, end }: { row: StripRow; end: number }) {
  const at = (x: number) => place(x, end).toFixed(2) + "%";
  const has = row.lo !== null && row.hi !== null && row.center !== null;
  return (
    <svg aria-hidden="true">
      {has && (
        <rect
          class="whisker"
          x={at(row.lo ?? 0)}
          width={(place(row.hi ?? 0, end) - place(row.lo ?? 0, end)).toFixed(2) + "%"}
          y="calc(50% - 1.5px)"
          height="3"
        />
      )}
      {row.center !== null && <circle class="center" cx={at(row.center)} cy="50%" r="5" />}
    </svg>
  );
}
