package generator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// response is a response whose numbers a test chose.
type response struct {
	begin, elapsed int64 // ns since 1970, and ns
	status         int   // 0: none
	good           bool
}

// knownRows returns responses in order of their ends, as tools write them. Times are multiples of
// a grain.
func knownRows(r *rand.Rand, grain int64) (out []response) {
	begin := int64(1_700_000_000_000_000_000)
	for range 1 + r.IntN(300) {
		begin += r.Int64N(int64(20*time.Millisecond)/grain) * grain
		k := response{begin: begin, status: []int{200, 200, 200, 201, 302, 404, 503}[r.IntN(7)],
			elapsed: (1 + int64(math.Exp(r.Float64()*12))) * grain}
		k.good = k.status < 400
		out = append(out, k)
	}
	slices.SortStableFunc(out, func(a, b response) int {
		return int(min(max(a.begin+a.elapsed-b.begin-b.elapsed, -1), 1))
	})
	return out
}

// written is a format in which the test writes responses.
type written struct {
	name  string
	grain int64
	// lines returns the file's lines; those after the first ones have one cell for each value.
	lines func(r *rand.Rand, all []response) (lines []string, heads int)
}

func seconds6(ns int64) string { return fmt.Sprintf("%.6f", float64(ns)/1e9) }

var writtenFormats = []written{
	{"JMeter's log", 1e6, func(r *rand.Rand, all []response) ([]string, int) {
		comma := string([]rune(",;\t|")[r.IntN(4)])
		layout := []string{"", "2006/01/02 15:04:05.000", "2006-01-02T15:04:05.000Z07:00",
			"02.01.2006 15:04:05.000"}[r.IntN(4)]
		heads := []string{"timeStamp", "elapsed", "label", "responseCode", "responseMessage",
			"success"}
		order := r.Perm(len(heads))
		row := func(cells []string) string {
			var out []string
			for _, i := range order {
				out = append(out, cells[i])
			}
			return strings.Join(out, comma)
		}
		lines := []string{row(heads)}
		for _, k := range all {
			at := fmt.Sprint(k.begin / 1e6)
			if layout != "" {
				at = time.Unix(0, k.begin).UTC().Format(layout)
			}
			lines = append(lines, row([]string{at, fmt.Sprint(k.elapsed / 1e6),
				`"a, b; ""c"""`, fmt.Sprint(k.status), "x", fmt.Sprint(k.good)}))
		}
		return lines, 1
	}},
	{"hey's CSV", 1e3, func(r *rand.Rand, all []response) ([]string, int) {
		lines := []string{strings.TrimSpace(heyHead)}
		for _, k := range all {
			lines = append(lines, fmt.Sprintf("%s,0,0,0,0,0,%d,%s", seconds6(k.elapsed), k.status,
				seconds6(k.begin-all[0].begin+1e9)))
		}
		if r.IntN(2) == 0 { // through a spreadsheet
			for i, line := range lines {
				lines[i] = strings.ReplaceAll(strings.ReplaceAll(line, ",", ";"), ".", ",")
			}
		}
		return lines, 1
	}},
	{"h2load's log", 1e3, func(_ *rand.Rand, all []response) (lines []string, heads int) {
		for _, k := range all {
			lines = append(lines, fmt.Sprintf("%d\t%d\t%d", k.begin/1e3, k.status, k.elapsed/1e3))
		}
		return lines, 0
	}},
	{"k6's JSON", 1e3, func(_ *rand.Rand, all []response) (lines []string, heads int) {
		for _, k := range all {
			end := time.Unix(0, k.begin+k.elapsed).UTC().Format(time.RFC3339Nano)
			lines = append(lines, strings.TrimSpace(k6Point1("http_reqs", end, "1", "")))
			lines = append(lines, strings.TrimSpace(k6Point1("http_req_duration", end,
				fmt.Sprintf("%.3f", float64(k.elapsed)/1e6), fmt.Sprintf(
					`"status":"%d","expected_response":"%t"`, k.status, k.good))))
		}
		return lines, 0
	}},
	{"k6's CSV", 1e3, func(r *rand.Rand, all []response) ([]string, int) {
		unit := []int64{1, 1e3}[r.IntN(2)]
		lines := []string{strings.TrimSpace(k6CSVHead)}
		for _, k := range all {
			end := fmt.Sprint((k.begin + k.elapsed) / unit)
			lines = append(lines, strings.TrimSuffix(k6Row("http_reqs", end, "1.0", "", "",
				""), "\n"))
			lines = append(lines, strings.TrimSuffix(k6Row("http_req_duration", end,
				fmt.Sprintf("%.3f", float64(k.elapsed)/1e6), "", fmt.Sprint(k.good),
				fmt.Sprint(k.status)), "\n"))
		}
		return lines, 1
	}},
}

// checkKnown compares an import with the responses. It returns "" if their numbers are equal.
func checkKnown(text string, all []response, relative bool) string {
	l, _, err := Import("a", text)
	if err != nil {
		return err.Error()
	}
	var times []int64
	first, last := all[0].begin, int64(0)
	for _, k := range all {
		first, last = min(first, k.begin), max(last, k.begin+k.elapsed)
		if k.good {
			times = append(times, k.elapsed)
		}
	}
	if relative { // hey's begins count from the run's begin, a second before the first line's
		first = all[0].begin - 1e9
	}
	slices.Sort(times)
	if l.Done != int64(len(times)) || l.Errors.Status != int64(len(all)-len(times)) ||
		l.WindowNs != last-first {
		return fmt.Sprintf("%d good, %d failed in %d ns, want %d, %d, %d", l.Done,
			l.Errors.Status, l.WindowNs, len(times), len(all)-len(times), last-first)
	}
	if len(times) == 0 {
		return ""
	}
	d := l.ServiceTime
	for _, v := range []struct {
		q   float64
		got int64
	}{{0, d.MinNs}, {.5, d.P50Ns}, {.9, d.P90Ns}, {.99, d.P99Ns}, {.999, d.P999Ns}, {1, d.MaxNs}} {
		// A histogram of package hdrhistogram has the value at the rank nearest to q × n.
		rank := max(int(v.q*float64(len(times))+0.5), 1)
		want := times[rank-1]
		if math.Abs(float64(v.got-want)) > 1e-3*float64(want)+1 {
			return fmt.Sprintf("the time at %g is %d, want %d", v.q, v.got, want)
		}
	}
	return ""
}

// TestImportOfKnownRows checks that files with known rows give their counts, times and window. A
// file with one broken cell is refused, or gives the same numbers.
func TestImportOfKnownRows(t *testing.T) {
	refused := 0
	for _, f := range writtenFormats {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 1))
			all := knownRows(r, f.grain)
			lines, heads := f.lines(r, all)
			ending := []string{"\n", "\r\n"}[r.IntN(2)]
			text := strings.Join(lines, ending) + ending
			relative := f.name == "hey's CSV"
			if why := checkKnown(text, all, relative); why != "" {
				t.Fatalf("%s, seed %d: %s", f.name, seed, why)
			}
			i := heads + r.IntN(len(lines)-heads)
			for _, bad := range []string{"x", "-1", "1e999", "NaN", "", "\"", "1,5,", "0x10"} {
				whole := lines[i]
				at := r.IntN(len(whole) + 1)
				lines[i] = whole[:at] + bad + whole[at:]
				broken := strings.Join(lines, ending) + ending
				l, _, err := Import("a", broken)
				if err != nil {
					refused++
				} else if l.Done+l.Errors.Total() != int64(len(all)) {
					t.Fatalf("%s, seed %d: with line %q it has %d good, %d failed of %d", f.name,
						seed, lines[i], l.Done, l.Errors.Total(), len(all))
				}
				lines[i] = whole
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d broken files were refused", refused)
	}
}
