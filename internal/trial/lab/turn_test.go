package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/trial"
	"prony.example/record"
)

// stages is a world that lists the steps of a run.
type stages struct {
	simulated
	list *[]string
}

func (w stages) step(name string) { *w.list = append(*w.list, name) }

func (w stages) Share() (func() error, error) {
	w.step("share")
	return func() error { w.step("leave"); return nil }, nil
}

func (w stages) Enter() (*process.Journal, []string, error) {
	w.step("enter")
	return nil, []string{"process 8"}, nil
}

func (w stages) Container(ctx context.Context, name string, to *Launchers) error {
	w.step("open")
	to.Ends = append(to.Ends, func() error { w.step("close"); return nil })
	return w.simulated.Container(ctx, name, to)
}

func (w stages) Build(ctx context.Context, b *service.Builder, s *service.Service) (
	*service.Built, error) {
	w.step("build")
	return w.simulated.Build(ctx, b, s)
}

func (w stages) Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
	report func(string)) error {
	w.step("measure")
	return w.simulated.Measure(ctx, lab, e, cores, report)
}

func (w stages) Lab(j *process.Journal, by *Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	return w.simulated.Lab(j, by, l, dir, observe)
}

// A run that waits shares the machine for its builds, and takes it alone before it measures. One
// that does not wait, and a resumed one, take it alone at once. The plan is the first event of its
// progress, and a folder that cannot be written ends it before it builds. Launchers of containers
// are open only meanwhile.
func TestRunsBuildBesideOthers(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	check := func(wait time.Duration, edit func(*Wish), want ...string) (said []string,
		dir string) {
		t.Helper()
		w, wish := stages{list: new([]string)}, wholeWish(t, wholeSuite, "a")
		w.has = []string{"docker"}
		edit(&wish)
		root := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			heard := &beginner{}
			l := &Lab{Root: root, Cache: filepath.Join(root, "cache"), World: w, Tell: heard,
				Wait: wait}
			dir, _ = l.Run(t.Context(), wish) // what it did says the same
			said = heard.lines
		})
		if !slices.Equal(*w.list, want) {
			t.Errorf("waiting %v: it did %q, want %q", wait, *w.list, want)
		}
		return said, dir
	}
	usual := func(*Wish) {}
	check(0, usual, "enter", "build", "measure")
	said, dir := check(time.Minute, usual, "share", "build", "leave", "enter", "measure")
	if !slices.Contains(said, "ended process 8, which an earlier run left when it was killed") {
		t.Errorf("it says %q", said)
	}
	events, err := os.ReadFile(filepath.Join(dir, record.ProgressFile))
	first, _, _ := bytes.Cut(events, []byte("\n"))
	var p record.Progress
	if err = errors.Join(err, json.Unmarshal(first, &p)); err != nil || p.Kind != record.Begins {
		t.Errorf("the first event is %s, error %v, want the plan", first, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unwritable := func(w *Wish) { w.Out = filepath.Join(file, "r") }
	check(time.Minute, unwritable, "share", "leave")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	contained := func(w *Wish) {
		w.Override.Launchers, w.Own.Services[0].Dir = []string{"docker"}, dir
	}
	check(0, contained, "enter", "open", "measure", "close")
	check(time.Minute, func(w *Wish) { contained(w); unwritable(w) }, "share", "open", "close",
		"leave")
}
