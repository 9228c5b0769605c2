package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
)

// buildBytes is the memory that one build may take: a Maven or Cargo build of the catalog stays
// below it.
const buildBytes = 2 << 30

// Maker builds what a service is started from: its artifact or its image.
type Maker func(context.Context, *service.Builder, *service.Service) (*service.Built, error)

// Outcome is the result of one build.
type Outcome struct {
	Built *service.Built
	Err   error
}

// Builder returns a builder of the checkout's services.
func (l *Lab) Builder(tools *service.Tools) *service.Builder {
	return &service.Builder{Root: l.Root, Cache: l.Cache, Tools: tools, Progress: l.Tell.Say,
		Again: l.built}
}

// BuildAll builds services in parallel and returns the outcome of each, in their order. A failed
// build does not stop the others. jobs limits the parallel builds; 0: buildJobs of
// this machine.
func BuildAll(ctx context.Context, build Maker, b *service.Builder, services Catalog,
	jobs int) []Outcome {
	if jobs == 0 {
		jobs = buildJobs(runtime.NumCPU(), host.AvailableBytes())
	}
	out := make([]Outcome, len(services))
	free := make(chan struct{}, jobs)
	var all sync.WaitGroup
	for i, s := range services {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				out[i].Err = fmt.Errorf("build %s: interrupted", s.Label())
				return
			}
			out[i].Built, out[i].Err = build(ctx, b, s)
		})
	}
	all.Wait()
	return out
}

// buildJobs returns how many builds a machine can run in parallel: one for each core, and one more
// because some builds wait for downloads, but at most one for each buildBytes of memory.
func buildJobs(cores int, availableBytes int64) int {
	return max(1, min(cores+1, int(availableBytes/buildBytes)))
}

// built is the outcomes of a run's builds, by service.
type built struct{ artifacts, images map[*service.Service]Outcome }

// prepare builds what the plan needs and resolves its trials. A failed build fails only the trials
// that need it.
func (r *run) prepare(ctx context.Context) error {
	var plain, contained Catalog
	for _, t := range r.plan.Trials {
		s, _, err := r.launched(t)
		list := &plain
		if t.Launcher != "" {
			list = &contained
		}
		if err == nil && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	b := r.Builder(r.tools)
	b.Note = r.turn.journal.Step
	all := func(build Maker, services Catalog, jobs int) map[*service.Service]Outcome {
		out := map[*service.Service]Outcome{}
		for i, o := range BuildAll(ctx, build, b, services, jobs) {
			if out[services[i]] = o; o.Err != nil && ctx.Err() == nil {
				r.Tell.Say(o.Err.Error())
			}
		}
		return out
	}
	created := built{artifacts: all(r.World.Build, plain, 0)}
	created.images = all(r.World.Image, contained, 1) // Docker itself uses several cores
	if ctx.Err() != nil {
		return errors.New("build: interrupted")
	}
	for _, t := range r.plan.Trials {
		r.experiment.Trials = append(r.experiment.Trials, r.resolve(ctx, t, created))
	}
	for _, t := range r.plan.Reserve {
		r.experiment.Reserve = append(r.experiment.Reserve, r.resolve(ctx, t, created))
	}
	if len(r.experiment.Reserve) > 0 {
		r.experiment.More = r.further(r.Tell.Say).next
	}
	if r.wish.Own != nil {
		r.experiment.Stop = hopeless
	}
	return nil
}

// launched returns what a trial launches: its target, or the build of it that the variant requires.
func (r *run) launched(t suite.Trial) (*service.Service, service.Target, error) {
	s, target, _ := r.catalog.Find(t.Target)
	with := r.plan.Suite.Variant(t.Variant)
	if with.Build != "" {
		return r.catalog.twin(s, target, with.Build)
	}
	return s.Speaking(with.Protocol), target, nil // the plan has checked that the target speaks it
}

// resolve returns a trial with all that it needs, or the reason why it cannot run.
func (r *run) resolve(ctx context.Context, t suite.Trial, created built) trial.Spec {
	out := trial.Resolve(r.plan.Suite, t)
	s, target, err := r.launched(t)
	from, ride := created.artifacts[s], r.rides[t.Variant]
	if t.Launcher != "" {
		from = created.images[s]
	}
	out.Subject = trial.Subject{Service: s, Target: target, Built: from.Built}
	if s.Checkout != nil {
		out.Subject.Commit = s.Checkout.Commit
	} else if s.Origin != "" || r.wish.Own != nil {
		place := r.checkoutOf(ctx, s.Dir)
		out.Subject.Commit, out.Subject.Dirty = place.commit, place.dirty
	}
	if r.plan.Suite.Precision.Half > 0 && t.Start != "" {
		out.Origin.Stage = 1
	}
	out.Ride, out.Lacking = ride.Ride, cmp.Or(err, from.Err, ride.lacking)
	return out
}

// checkout is the revision of files.
type checkout struct {
	commit string
	dirty  bool // the files differ from the commit
}

// checkoutOf returns the checkout of a folder by git, cached. The commit is "unknown" without a
// checkout or without git.
func (r *run) checkoutOf(ctx context.Context, dir string) checkout {
	if known, ok := r.checkouts[dir]; ok {
		return known
	}
	out := checkout{commit: "unknown"}
	head, err := service.Git(ctx, dir, "rev-parse", "HEAD")
	if err == nil {
		status, err := service.Git(ctx, dir, "status", "--porcelain")
		out = checkout{head, err != nil || status != ""}
	}
	r.checkouts[dir] = out
	return out
}
