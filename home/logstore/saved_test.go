package logstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
)

// A store that is saved and loaded in the midst of a trial ends with the same file and counts as
// one that is not: warnings, samples, records of traces, and open windows.
func TestSaved(t *testing.T) {
	var files [2]string
	for i := range 2 {
		synctest.Test(t, func(t *testing.T) {
			o := Options{Warnings: 20, Uniform: 10}
			r := rand.New(rand.NewPCG(3, 9))
			s := open(t, t.TempDir(), o)
			began := clock.Wall().UnixNano()
			begin := func(s *Store) {
				must(t, s.Begin(telemetry.Trial{ID: "t", Target: "x"}),
					s.Mark(telemetry.Mark{Trial: "t", Kind: telemetry.Open, Name: "a",
						WallNs: began}))
			}
			begin(s)
			for n := range 300 {
				send(t, s, spec{ns: clock.Wall().UnixNano(), body: fmt.Sprint("line ", n),
					severity: plog.SeverityNumber(r.IntN(24)), trace: uint64(r.IntN(9))})
				if i == 1 && (n == 100 || n == 200) {
					s = moved(t, s, o, begin)
				}
				time.Sleep(100 * time.Millisecond)
			}
			out := end(t, s, "t", func(id pcommon.TraceID) bool { return id[15]%2 == 0 })
			data, err := os.ReadFile(s.Files()[0])
			must(t, err, s.Close())
			files[i] = fmt.Sprintf("%+v %+v\n%s", out.Counts, out.Loads, data)
			if s.heldBytes != 0 || s.trials.Bytes != 0 {
				t.Errorf("%d and %d bytes are held at the end", s.heldBytes, s.trials.Bytes)
			}
		})
	}
	if files[0] != files[1] || len(files[0]) < 1000 {
		t.Errorf("%s\nwant\n%s", files[1], files[0])
	}
}

// moved returns a store in another folder with what s has in memory, which is not used any more.
func moved(t *testing.T, s *Store, o Options, begin func(*Store)) *Store {
	t.Helper()
	out := open(t, t.TempDir(), o)
	begin(out)
	must(t, s.Save(func(kind byte, data []byte) error {
		return out.Load(kind, slices.Clone(data))
	}), s.Close())
	return out
}
