package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"prony/internal/clock"
	"prony/internal/result"
	"prony/internal/telemetry"
)

// resume takes over what a run that was ended has, and refuses one whose further trials would not
// be of the same experiment: another plan or seed, other artifacts, another machine. Records are
// never written again: a trial that was interrupted has one, and stays failed. What was measured in
// a block before and after is further apart than the trials of other blocks, so that the machine's
// mood does not cancel in it; the order within blocks is random, which makes that noise and no
// bias, and the report says when it was.
func (r *run) resume(context.Context) error {
	dir := r.wish.Resume
	if dir == "" {
		return nil
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("resume %s: "+format+"; begin a new run", append([]any{dir}, args...)...)
	}
	head, records, _, err := result.Read(dir)
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range head.Missing(records) {
		missing = append(missing, p.Trial)
	}
	if r.plan.Suite.For != 0 {
		return fail("its time went where it decided, which began with it")
	}
	if _, err := os.Stat(filepath.Join(dir, telemetry.Dir)); err == nil {
		return fail("it keeps telemetry, whose parts cannot be put together")
	}
	now := &r.experiment
	switch {
	case len(missing) == 0:
		return fmt.Errorf("resume %s: each of its %d trials has a record; see it with prony "+
			"report", dir, len(head.Trials))
	case head.PlanHash != now.Head.PlanHash || head.Seed != now.Head.Seed ||
		!slices.Equal(head.Trials, now.Head.Trials):
		return fail("suite, flags, seed or the tools that are here give other trials than it had")
	}
	for _, rec := range records {
		if what := r.unlike(rec); what != "" {
			return fail("%s is not that of %s", what, rec.Trial)
		}
		if rec.Duet != nil && slices.Contains(missing, rec.Duet.With) {
			return fail("of the duet of %s one side has no record", rec.Trial)
		}
	}
	head.Resumed = append(head.Resumed, result.Resumption{Time: clock.Wall(),
		Trials: len(records), Command: r.wish.Command})
	head.Host = now.Head.Host
	now.Head, now.Done = head, records
	r.Tell.Say(fmt.Sprintf("%d of %d trials have a record: the others follow", len(records),
		len(head.Trials)))
	return nil
}

// unlike says what of a trial's surroundings is not as it was; empty: nothing.
func (r *run) unlike(rec *result.Record) string {
	was, is := rec.Provenance, r.experiment.Prov
	for _, t := range r.experiment.Trials {
		if t.ID != rec.Trial || t.Subject.Built == nil {
			continue
		}
		is.Tools = t.Subject.Built.Versions()
		if rec.Artifact.SHA256 != "" && t.Subject.Built.SHA256 != rec.Artifact.SHA256 {
			return "the artifact of " + t.Target
		}
	}
	for _, same := range []struct {
		what    string
		was, is any
	}{
		{"prony's version", was.Prony, is.Prony}, {"the suite", was.SuiteHash, is.SuiteHash},
		{"the version of a tool", was.Tools, is.Tools}, {"the kernel", was.Kernel, is.Kernel},
		{"the processor", was.CPUModel, is.CPUModel},
		{"the number of cores", was.Cores, is.Cores},
		{"the memory", was.MemoryBytes, is.MemoryBytes},
		{"the governor", was.Governor, is.Governor},
	} {
		if fmt.Sprint(same.was) != fmt.Sprint(same.is) {
			return same.what
		}
	}
	return ""
}
