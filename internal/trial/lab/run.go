package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/launch"
	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/record"
)

// run is a run in progress. Its fields are filled in from top to bottom.
type run struct {
	*Lab
	reported *scribe // Lab.Tell, which also writes the progress to disk
	wish     Wish
	tools    *service.Tools
	planned
	rides     map[string]ride // by variant
	launchers *Launchers
	skipped   []record.Skipped

	cores  []int
	layout host.Layout

	turn       *turn
	checkouts  map[string]checkout // by folder
	experiment trial.Experiment
	dir        string
}

// Run runs what w requests and returns the folder of the records, which is empty if the run ended
// before it had one. Failed or INVALID trials are not errors.
func (l *Lab) Run(ctx context.Context, w Wish) (dir string, err error) {
	reported, ownLab := &scribe{Observer: l.Tell}, *l
	ownLab.Tell = reported
	l = &ownLab
	r := &run{Lab: l, reported: reported, wish: w, checkouts: map[string]checkout{},
		tools: service.FindTools(ctx)}
	if r.planned, err = l.expand(w); err != nil {
		return "", err
	}
	if why := r.plan.Blockwise; why != "" && len(r.plan.Targets()) > 1 {
		l.Tell.Say("blocks instead of slices: " + why)
	}
	if r.plan.Quick != "" {
		l.Tell.Say(r.plan.Quick)
	}
	if r.plan.Grouped != "" {
		l.Tell.Say(r.plan.Grouped)
	}
	if err := r.stack(ctx); err != nil {
		return "", err
	}
	if err := r.begin(ctx); err != nil {
		return "", err
	}
	defer func() { _ = r.turn.leave() }() // the kernel releases the lock when the process ends
	r.launchers = &Launchers{By: map[string]launch.Launcher{}}
	defer func() { err = errors.Join(err, r.launchers.close()) }()
	for _, step := range []func(context.Context) error{r.board, r.open} {
		if err := step(ctx); err != nil {
			return "", err
		}
	}
	if err := r.narrow(); err != nil {
		return "", err
	}
	if r.cores, err = host.Cores(); err != nil {
		return "", err
	}
	if err := r.divide(); err != nil {
		return "", err
	}
	l.leftovers(r.launchers.Reaped, nil)
	l.Tell.Begin(Begun{r.plan, r.layout, r.catalog.attached()})
	r.head(ctx)
	if r.dir = cmp.Or(w.Resume, w.Out); r.dir == "" {
		results := filepath.Join(l.Root, "results")
		if w.Own != nil {
			results = w.Own.Results
		}
		r.experiment.Head.ID, r.dir = record.NewFolder(results, r.experiment.Head.ID)
	}
	release, err := record.Reserve(r.dir, "--out")
	if err != nil {
		return "", err
	}
	defer release()
	reported.open(r.dir)
	defer func() { err = errors.Join(err, reported.end(ctx, r.dir, err)) }()
	for _, step := range []func(context.Context) error{r.prepare, r.alone, r.grade, r.resume} {
		if err := step(ctx); err != nil {
			return "", err
		}
	}
	if err = r.measure(ctx); err != nil && r.nextStep() != "" {
		err = fmt.Errorf("%w; %s", err, r.nextStep())
	}
	return r.dir, err
}

// begin takes the machine for downloads, builds and launchers of containers, which would disturb
// another lab's measurements.
func (r *run) begin(ctx context.Context) (err error) {
	begin := r.Lab.begin
	if r.wish.Resume != "" { // another lab could resume the same run, whose builds are cached
		begin = r.enter
	}
	r.turn, err = begin(ctx)
	return err
}

// alone takes the machine for the measurements, if other labs could build beside this one.
func (r *run) alone(ctx context.Context) error {
	if err := r.Lab.alone(ctx, r.turn); err != nil {
		return err
	}
	r.leftovers(r.turn.reaped, r.turn.journal.Stay())
	return r.turn.journal.Keys(r.dir)
}

// divide assigns cores to the run's services and loads.
func (r *run) divide() (err error) {
	s := r.plan.Suite
	if r.layout, err = host.Divide(r.cores, s.Limits.CPUs); err != nil {
		return fmt.Errorf("run %s: %w", s.Name, err)
	}
	all := host.Processors(r.cores)
	r.layout = r.layout.Apart(all)
	if r.backed() {
		r.layout = r.layout.Back(all)
	}
	return nil
}

// backed reports whether a target uses backing processes that can have their own cores. The cores
// are equal in all trials, and backing processes in containers cannot have them.
func (r *run) backed() bool {
	some := false
	for _, t := range r.plan.Trials {
		if t.Launcher != "" {
			return false
		}
		s, target, ok := r.catalog.Find(t.Target)
		some = some || ok && s.Backed(target)
	}
	return some
}

// head fills in the run's head and the origin of its records.
func (r *run) head(ctx context.Context) {
	p, s := r.plan, r.plan.Suite
	head := record.Run{
		ID: clock.Wall().Format("2006-01-02T15-04-05Z"), Suite: s.Name, Question: s.Question,
		File: s.File, Baseline: p.Baseline, Blocks: s.Blocks, Seed: s.Seed, PlanHash: p.Hash,
		Command: r.wish.Command, AA: s.AA, Columns: s.Columns,
		ForNs: int64(s.For), Labels: r.wish.Labels,
		Requests: map[string][]string{}, Skipped: r.skipped,
	}
	if r.wish.Own != nil {
		head.Decides = r.wish.Own.Decides
	}
	if s.For == 0 { // otherwise the trials are not known in advance
		head.Planned, head.Reserve = outline(p.Trials), outline(p.Reserve)
	}
	for _, t := range head.Planned {
		head.Trials = append(head.Trials, t.Trial)
	}
	for _, l := range s.Loads {
		head.Loads = append(head.Loads, l.Name)
	}
	for _, scene := range s.Scenarios {
		for _, q := range scene.Requests {
			if q.Setup != "" {
				continue // results exclude it
			}
			head.Requests[scene.Name] = append(head.Requests[scene.Name], q.Request)
		}
	}
	place := r.checkoutOf(ctx, r.Root)
	prov := record.Provenance{Prony: r.wish.Version, Command: r.wish.Command, Seed: s.Seed,
		SuiteHash: s.Hash, PlanHash: p.Hash, Commit: place.commit, Dirty: place.dirty}
	host.Describe(&prov)
	if s.Idle != suite.IdleHalts {
		prov.Idle = r.World.Idle(prov)
	}
	r.experiment.Head, r.experiment.Prov = head, prov
}

// rowOf returns the row of a target in the tables of a plan: the only one, or that of its name.
func rowOf(trials []suite.Trial, target string) string {
	var rows []string
	for i, p := range outline(trials) {
		if trials[i].Target == target {
			rows = table.AddNew(rows, p.Row)
		}
	}
	if len(rows) == 1 {
		return rows[0]
	}
	return target
}

// outline lists trials of a plan by the row names of tables.
func outline(trials []suite.Trial) (out []record.Planned) {
	for _, t := range trials {
		row := record.Target{Name: t.Target, Variant: t.Variant, Launcher: t.Launcher, Arm: t.Arm}
		if t.Driver != suite.Drivers[0] {
			row.Driver = t.Driver
		}
		out = append(out, record.Planned{Trial: t.ID, Row: table.RowName(row),
			Scenario: t.Scenario, Block: t.Block, Role: t.Role})
	}
	return out
}

// grade grades the host after all builds and before any measurement, and returns an error if the
// grade is below the demand.
func (r *run) grade(ctx context.Context) error {
	limits := r.plan.Suite.Limits
	g := r.World.Examine(ctx, doctor.Options{CPUs: limits.CPUs, MemoryBytes: int64(limits.Memory)})
	r.experiment.Head.Host = &g
	if err := doctor.Refuse(g, r.wish.Host); err != nil {
		// This must not have the exit status of INVALID trials, which scripts pass on to a gate: no
		// run exists.
		return err
	}
	if g.Grade != record.Fit {
		r.Tell.Say("the host is " + g.Grade + ": prony doctor prints the reasons and fixes")
	}
	return nil
}

// resume adopts the records of an interrupted run. It refuses a run whose further trials would
// belong to another experiment: another plan or seed, other artifacts, another machine. Trials that
// were interrupted are run again; their records stay in the file, and later ones count. Within a
// block, results from before and after the interruption are further apart in time than usual, so
// that slow changes of the machine do not cancel. The order within blocks is random, which makes
// this noise and no bias, and the report shows when it happened.
func (r *run) resume(context.Context) error {
	dir := r.wish.Resume
	if dir == "" {
		return nil
	}
	head, all, _, err := record.Read(dir)
	if err != nil {
		return err
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("cannot resume %s: "+format+"; start a new run with %s",
			append(append([]any{dir}, args...), reproduce(head.Command))...)
	}
	if why := r.unresumable(dir, all); why != "" {
		return fail("%s", why)
	}
	now := &r.experiment
	again := toRepeat(slices.Concat(now.Trials, now.Reserve), all)
	records := slices.DeleteFunc(slices.Clone(all), func(rec *record.Record) bool {
		return slices.Contains(again, rec.Trial)
	})
	switch {
	case len(again) == 0 && len(head.Missing(records)) == 0 && !r.goesOn(records):
		return fmt.Errorf("cannot resume %s: each of its %d trials already has a record; print "+
			"the run with prony report", dir, len(head.Trials))
	case head.PlanHash != now.Head.PlanHash || head.Seed != now.Head.Seed ||
		!slices.Equal(head.Trials, now.Head.Trials):
		return fail("the suite, flags, seed, free memory or installed tools have changed, so the " +
			"trials would differ")
	}
	for _, rec := range all {
		if subject := r.unlike(rec); subject != "" {
			return fail("%s differs from that of trial %s", subject, rec.Trial)
		}
	}
	head.Resumed = append(head.Resumed, record.Resumption{Time: clock.Wall(),
		Trials: len(records), Command: r.wish.Command, Repeats: again})
	head.Host = now.Head.Host
	now.Head, now.Done = head, records
	r.Tell.Say(fmt.Sprintf("%d of %d trials are complete: the others run now", len(records),
		len(head.Trials)))
	return nil
}

// toRepeat returns the trials with a record that a resumed run runs again, in the order of their
// records: those that were interrupted, and those of a start in which a trial was interrupted or
// has no record, because the trials of a start count only side by side.
func toRepeat(trials []trial.Spec, records []*record.Record) (out []string) {
	complete := map[string]bool{} // by trial: it has a record, and was not interrupted
	for _, rec := range records {
		complete[rec.Trial] = rec.Failure == nil || !rec.Failure.Interrupted
	}
	startOf, cut := map[string]string{}, map[string]bool{}
	for _, t := range trials {
		if t.Start != "" {
			startOf[t.ID] = t.Start
			cut[t.Start] = cut[t.Start] || !complete[t.ID]
		}
	}
	for _, rec := range records {
		if !complete[rec.Trial] || cut[startOf[rec.Trial]] {
			out = append(out, rec.Trial)
		}
	}
	return out
}

// unresumable returns why the remaining trials of a run cannot follow its records; empty: they can.
// The collector continues in its folder, but a repeated trial has the name of the interrupted one.
func (r *run) unresumable(dir string, records []*record.Record) string {
	if r.plan.Suite.For != 0 {
		return "later starts of a --for run depend on earlier results"
	}
	again := toRepeat(slices.Concat(r.experiment.Trials, r.experiment.Reserve), records)
	var sent []string
	for _, rec := range records {
		if slices.Contains(again, rec.Trial) && slices.Contains(rec.Instruments, trial.ToHome) {
			sent = append(sent, rec.Trial)
		}
	}
	var counts telemetry.Stats
	text, err := files.Read(filepath.Join(dir, telemetry.Dir, telemetry.StatsFile), files.Page)
	if err == nil && json.Unmarshal(text, &counts) == nil { // otherwise no trial has sent any
		for _, under := range counts.Trials { // when Prony was killed
			sent = append(sent, under.Trial.ID)
		}
	}
	if len(sent) == 0 {
		return ""
	}
	return "trial " + sent[0] + " was interrupted while it sent telemetry, which cannot be " +
		"separated from the telemetry of its repetition"
}

// nextStep returns what its user does after the run broke off; empty: nothing was stored.
func (r *run) nextStep() string {
	if !exists(filepath.Join(r.dir, record.RunFile)) {
		return ""
	}
	_, records, _, err := record.Read(r.dir)
	if why := r.unresumable(r.dir, records); err == nil && why != "" {
		return "the run cannot be resumed, because " + why + ": start a new run with " +
			reproduce(r.wish.Command)
	}
	return "continue with " + cmdlog.Join([]string{"prony", "run", "--resume", r.dir})
}

// reproduce returns a command line that starts a run like that of another one.
func reproduce(command []string) string {
	return cmdlog.Join(cmdlog.Hushed(cmdlog.Repeatable(command)))
}

// goesOn reports whether a run whose planned trials have records has a further start to run.
func (r *run) goesOn(records []*record.Record) bool {
	return len(r.further(func(string) {}).next(records)) > 0
}

// unlike returns which condition of a trial has changed; empty: none.
func (r *run) unlike(rec *record.Record) string {
	was, is := rec.Provenance, r.experiment.Prov
	for _, t := range slices.Concat(r.experiment.Trials, r.experiment.Reserve) {
		if t.ID != rec.Trial || t.Subject.Built == nil {
			continue
		}
		is.Tools = t.Subject.Built.Versions()
		if rec.Artifact.SHA256 != "" && t.Subject.Built.SHA256 != rec.Artifact.SHA256 {
			return "the artifact of " + t.Target
		}
	}
	for _, same := range []struct {
		subject string
		was, is any
	}{
		{"prony's version", was.Prony, is.Prony}, {"the suite", was.SuiteHash, is.SuiteHash},
		{"the version of a tool", was.Tools, is.Tools}, {"the kernel", was.Kernel, is.Kernel},
		{"the processor", was.CPUModel, is.CPUModel},
		{"the number of cores", was.Cores, is.Cores},
		{"the memory", was.MemoryBytes, is.MemoryBytes},
		{"the governor", was.Governor, is.Governor},
		{"what idle cores do", was.Idle, is.Idle},
	} {
		if fmt.Sprint(same.was) != fmt.Sprint(same.is) {
			return same.subject
		}
	}
	return ""
}
