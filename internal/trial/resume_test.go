package trial_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"prony.example/internal/trial"
	"prony.example/load"
	"prony.example/record"
)

// Removal of the records is noticed before the next trial: its own would be in no report.
func TestRecordsThatAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if strings.Contains(lastLaunch(w.notes), "-02-") {
				if err := os.RemoveAll(w.dir); err != nil {
					t.Error(err)
				}
			}
			return w.steadyLoad(ctx, s)
		}
		e := w.experiment("a", "b", "c")
		records, err := w.lab.Run(context.Background(), e.resolve())
		if err == nil || !strings.Contains(err.Error(), "after 2 of 3 trials: read the "+
			"records: ") || len(records) != 2 {
			t.Errorf("%d records, error %v", len(records), err)
		}
	})
}

// A resumed run runs the trials without a record.
func TestResumedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.experiment("a", "b", "c")
		first, err := w.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		all := e.resolve()
		all.Head.Resumed, all.Done = []record.Resumption{{Trials: 2}}, slices.Delete(first, 1, 2)
		before := 0
		w.lab.Observe = func(e trial.Event) { before += e.Before }
		again, err := w.lab.Run(context.Background(), all)
		if before != 2 {
			t.Errorf("%d trials are told to have a record, want 2", before)
		}
		if err != nil || len(again) != 1 || again[0].Order != 2 || again[0].Resumed != 1 {
			t.Errorf("%d records, error %v", len(again), err)
		}
	})
}

// A record that cannot be saved ends the run, with the earlier ones complete on disk.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.experiment("a", "b")
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if s.Name == "peak" && strings.Contains(lastLaunch(w.notes), "-02-") {
				fill(t, filepath.Join(w.dir, record.TrialsFile))
			}
			return w.steadyLoad(ctx, s)
		}
		records, err := w.run(context.Background(), e)
		if err == nil || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("error is %v", err)
		}
		if len(records) != 1 || records[0].Outcome != record.Measured {
			t.Errorf("%d records are left of the first trial, want 1", len(records))
		}
	})
}

// A disk that is full ends a run: the trial counts as interrupted, and is run again when the run is
// resumed.
func TestNoSpaceInTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.experiment("a", "b", "c")
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if s.Name == "peak" && strings.Contains(lastLaunch(w.notes), "-02-") {
				return nil, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
			}
			return w.steadyLoad(ctx, s)
		}
		records, err := w.run(context.Background(), e)
		if err == nil || !strings.Contains(err.Error(), ": write x: no space left on device; "+
			"free some space") {
			t.Errorf("error is %v", err)
		}
		if len(records) != 2 || records[1].Failure == nil || !records[1].Failure.Interrupted {
			t.Errorf("%d records, the last one %+v", len(records), records[len(records)-1].Failure)
		}
	})
}

// fill makes the lab's open file of records refuse every further byte, as a full disk does:
// /dev/full replaces the descriptor.
func fill(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		link, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || link != path {
			continue
		}
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		var fd int
		if err := json.Unmarshal([]byte(e.Name()), &fd); err != nil {
			t.Fatal(err)
		}
		if err := dup(int(full.Fd()), fd); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no descriptor is open on %s", path)
}
