package faults

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// Another process can follow a run: its plan, each step, the current load, each saved record, and
// its end. A user who stops it gives a reason, which every report repeats. A resumed run continues
// counting.
func TestFollowed(t *testing.T) {
	testsets.Once(t, "a run that is followed and stopped from elsewhere", programFiles)
	s := newScene(t)
	s.furnish("go-two")
	p := s.begin("", s.arguments("--root ROOT run --targets go-two --blocks 3 --measure 2s "+
		"--warmup 300ms --out OUT")...)
	p.run(t)
	var seen []record.Progress
	at := func(kind string) int {
		return slices.IndexFunc(seen, func(p record.Progress) bool { return p.Kind == kind })
	}
	fast := func(p record.Progress) bool {
		return p.Kind == record.Pulses && p.Step != "warmup" && p.PerS > 100 && p.P99Ns > 0
	}
	for end := time.Now().Add(2 * within); ; time.Sleep(50 * time.Millisecond) {
		now, err := progressOf(s.path("OUT"), int64(len(seen)))
		if seen = append(seen, now...); at(record.TrialEnds) >= 0 &&
			slices.ContainsFunc(seen[at(record.TrialEnds):], fast) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing to follow: %+v, %v", seen, err)
		}
	}
	pid := p.cmd.Process.Pid
	ordered(t, seen, pid)
	if d := seen[at(record.TrialEnds)]; d.Ended != 1 || d.Total != 3 || d.Grade == "" ||
		!strings.Contains(d.Text, "go-two") {
		t.Errorf("a trial ends as %+v", d)
	}
	s.put("OUT/"+record.StopFile, "enough\x1b of\nit")
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	e := p.wait(t)
	e.check(t)
	all, err := progressOf(s.path("OUT"), 0)
	if last := all[len(all)-1]; err != nil || last.Kind != record.Ends ||
		last.Outcome != record.Stopped || last.Text != "stopped: enough of it" {
		t.Errorf("it ends with %+v, %v", last, err)
	}
	head, _, _, err := record.Read(s.path("OUT"))
	if err != nil || len(head.Notes) != 1 || head.Notes[0] != "stopped: enough of it" {
		t.Errorf("its head notes %q, %v", head.Notes, err)
	}
	if !strings.Contains(e.stdout, "stopped: enough of it") {
		t.Errorf("its report says %s", e.stdout)
	}
	s.put("OUT/"+record.StopFile, "too late")
	again := s.begin("", s.arguments("--root ROOT run --resume OUT")...)
	again.bound = 2 * within
	again.run(t)
	e = again.wait(t)
	_, records, _, err := record.Read(s.path("OUT"))
	if err != nil || len(records) != 3 || slices.ContainsFunc(records, func(r *record.Record) bool {
		return r.Failure != nil // the interrupted trial was run again
	}) {
		t.Errorf("it goes on to exit %d, %d records, %v: %s", e.code, len(records), err, e.stderr)
	}
	if _, err := os.Stat(s.path("OUT/" + record.StopFile)); err == nil {
		t.Error("a reason to end a run that had ended waits for the next one")
	}
	all, err = progressOf(s.path("OUT"), 0)
	if last := all[len(all)-1]; err != nil || last.Outcome != record.Done ||
		last.Seq != int64(len(all)) {
		t.Errorf("it goes on to %+v in %d lines, %v", last, len(all), err)
	}
}

// ordered requires the lines of a run of three trials in order, and not too often.
func ordered(t *testing.T, seen []record.Progress, pid int) {
	t.Helper()
	if b := seen[0]; b.Kind != record.Begins || b.PID != pid ||
		b.ProcessStart != cgroup.Born(pid) ||
		len(b.Planned) != 3 || b.EstimateMaxNs < b.EstimateMinNs ||
		b.EstimateMinNs < int64(6*time.Second) {
		t.Errorf("it begins with %+v", b)
	}
	pulses := 0
	for i, p := range seen {
		if p.Seq != int64(i)+1 || i > 0 && p.Time.Before(seen[i-1].Time) {
			t.Errorf("line %d is %+v", i+1, p)
		}
		if p.Kind == record.Pulses {
			pulses++
		}
	}
	took := seen[len(seen)-1].Time.Sub(seen[0].Time).Seconds()
	if float64(pulses) > 2*took+4 {
		t.Errorf("%d pulses in %.1f s", pulses, took)
	}
}

// progressOf returns the complete lines of a run's progress after a line.
func progressOf(dir string, after int64) (out []record.Progress, err error) {
	b, err := os.ReadFile(filepath.Join(dir, record.ProgressFile))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(b) {
		var p record.Progress
		if json.Unmarshal(line, &p) == nil && p.Kind != "" && p.Seq > after {
			out = append(out, p)
		}
	}
	return out, nil
}
