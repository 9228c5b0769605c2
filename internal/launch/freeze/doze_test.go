package freeze

import (
	"errors"
	"os"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// A dozing target runs from time to time; a frozen one does not run, and a thawed one runs all the
// time.
func TestDoze(t *testing.T) {
	testsets.Live(t)
	for _, way := range []string{record.FreezeCgroup, record.FreezeSignals} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			p := launched(t, way, 1, os.Args[0], burn, "0")
			f := freezer(t, p, way)
			if err := errors.Join(f.Doze(), f.Doze()); err != nil {
				t.Fatal(err)
			}
			pids := p.PIDs()
			for range 2 { // it runs, stops, and runs again
				before := used(t, pids)
				await(t, "a turn of a dozing target", func() bool {
					return used(t, pids)-before > int64(time.Millisecond)
				})
				time.Sleep(2 * dozeRun)
			}
			if err := f.Freeze(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(dozeRun)
			before := used(t, pids)
			time.Sleep(dozeStop + 2*dozeRun)
			if after := used(t, pids); after-before > int64(5*time.Millisecond) {
				t.Errorf("frozen after a doze, it used %d ns", after-before)
			}
			if err := errors.Join(f.Doze(), f.Thaw()); err != nil {
				t.Fatal(err)
			}
			before = used(t, pids)
			await(t, "use of processor time", func() bool { return used(t, pids) > before })
			if err := errors.Join(f.Doze(), p.Stop(0)); err != nil {
				t.Fatal(err)
			}
			if err := f.Freeze(); !errors.Is(err, ErrEnded) {
				t.Errorf("frozen after its end: %v", err)
			}
		})
	}
}
