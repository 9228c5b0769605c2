package spanstore

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

// moved returns a store in another folder with what s has in memory, which is not used any more.
func moved(t *testing.T, s *Store, o Options, begin func(*Store)) *Store {
	t.Helper()
	type one struct {
		kind byte
		data []byte
	}
	var all []one
	must(t, s.Save(func(kind byte, data []byte) error {
		all = append(all, one{kind, slices.Clone(data)})
		return nil
	}))
	out := open(t, t.TempDir(), o)
	begin(out)
	for _, r := range all {
		must(t, out.Load(r.kind, r.data))
	}
	must(t, out.Load('x', []byte("of another store")), s.Close())
	return out
}

// A store that is saved and loaded in the midst of its trials ends with the same files and counts
// as one that is not: traces that are kept, late spans, traces under assembly, spans that were cut,
// windows that are still open, span metrics, and the counts of ended trials.
func TestSaved(t *testing.T) {
	var counts [2]Ended
	var files [2]map[string]string
	for i := range 2 {
		synctest.Test(t, func(t *testing.T) {
			o := Options{Asked: 8, Errors: 4, Slow: 6, Uniform: 5}
			r := rand.New(rand.NewPCG(3, 9))
			began := clock.Wall().UnixNano()
			s := open(t, t.TempDir(), o)
			begin := func(s *Store) {
				must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}),
					s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Open, Name: "a",
						WallNs: began}))
			}
			must(t, s.Begin(telemetry.Trial{ID: "before", Target: "x"}))
			send(t, s, spec{trace: 1 << 40, id: 1, start: began})
			end(t, s, "before")
			begin(s)
			for n := range 400 {
				var trace []spec
				id := uint64(n/4 + 1)
				if n%50 == 0 { // late for a trace that is kept
					id = 1
				}
				for j := range 1 + r.IntN(4) {
					trace = append(trace, spec{trace: id, id: r.Uint64() | 1,
						parent: uint64(j), start: clock.Wall().UnixNano(), ns: r.Int64N(1e6),
						failed: r.IntN(9) == 0, asked: id == 1 || r.IntN(50) == 0,
						service: []string{"web", "db"}[j%2]})
				}
				send(t, s, trace...)
				if n == 150 {
					long := make([]spec, maxSpans+20)
					for j := range long {
						long[j] = spec{trace: 1000, id: uint64(j + 1), parent: 1, asked: true,
							start: clock.Wall().UnixNano(), ns: int64(j)}
					}
					long[0].parent = 0
					send(t, s, long...)
				}
				if i == 1 && (n == 160 || n == 300) {
					s = moved(t, s, o, begin)
				}
				time.Sleep(100 * time.Millisecond)
			}
			counts[i] = end(t, s, "t")
			files[i] = map[string]string{}
			for _, name := range s.Files() {
				data, err := os.ReadFile(name)
				must(t, err)
				files[i][filepath.Base(name)] = linesOf("t", string(data))
			}
			if all := s.Counts(); all.Received != counts[i].Counts.Received+1 {
				t.Errorf("%+v, want one more than %+v", all, counts[i].Counts)
			}
			must(t, s.Close())
		})
	}
	if counts[0].Counts != counts[1].Counts || len(counts[0].IDs) != len(counts[1].IDs) ||
		counts[0].Loads["a"] != counts[1].Loads["a"] {
		t.Errorf("%+v, want %+v", counts[1].Counts, counts[0].Counts)
	}
	for _, name := range []string{telemetry.SpansFile, traces.MetricsFile} {
		if files[0][name] != files[1][name] || files[0][name] == "" {
			t.Errorf("%s differs:\n%.2000s\nwant\n%.2000s", name, files[1][name], files[0][name])
		}
	}
}

// linesOf returns the lines of a trial.
func linesOf(trial, text string) (out string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"trial":"`+trial+`"`) {
			out += line
		}
	}
	return out
}
