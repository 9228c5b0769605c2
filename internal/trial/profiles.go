package trial

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/observe/profile"
	"prony.example/record"
)

// profileWait limits the start and the end of a profile.
const profileWait = 30 * time.Second

// shot is a profile of one process that is being taken, with its part of the record.
type shot struct {
	session profile.Session
	began   int64
	out     record.Profile
}

// profileDir is the folder of the profiles in a run's folder.
const profileDir = "profiles"

// profile starts the requested profiles of a load: each kind, of each process of the target.
// Sampling starts before the lead-in, because attaching a profiler takes work, and the returned
// function ends it after the load and its drain. A profile that fails is recorded and does not end
// the trial.
func (f *life) profile(ctx context.Context, load string) (end func()) {
	var shots []*shot
	for _, kind := range f.trial.Watched.Profile {
		for i := range f.proc.Parts {
			shots = append(shots, f.begin(ctx, load, kind, i))
		}
	}
	return func() { f.endProfiles(shots) }
}

func (f *life) begin(ctx context.Context, load, kind string, part int) *shot {
	process := f.proc.Parts[part]
	s := &shot{out: record.Profile{Kind: kind, Load: load, Process: process.Name}}
	bounded, cancel := context.WithTimeout(ctx, profileWait)
	defer cancel()
	subject, err := f.toProfile(part)
	if err == nil && f.lab.Profiler == nil {
		err = errors.New("profilers are not available here")
	}
	if err == nil {
		var collector profile.Collector
		if collector, err = f.lab.Profiler(subject, kind, f.trial.Watched.Profiler); err == nil {
			s.out.Tool = collector.Name()
			f.note("profiled: " + kind + " by " + s.out.Tool)
			s.session, err = collector.Start(bounded, subject, kind)
		}
	}
	if err != nil {
		s.out.Failed = err.Error()
	}
	s.began = clock.Mono()
	return s
}

// note records once that the lab uses an instrument.
func (f *life) note(subject string) {
	if !slices.Contains(f.rec.Instruments, subject) {
		f.rec.Instruments = append(f.rec.Instruments, subject)
	}
}

// toProfile describes a process of the target for a profiler.
func (f *life) toProfile(part int) (profile.Subject, error) {
	dir, err := filepath.Abs(filepath.Join(f.lab.Dir, profileDir))
	if err != nil {
		return profile.Subject{}, err
	}
	p := f.proc.Parts[part]
	s := profile.Subject{PID: p.PID, PIDs: f.proc.PIDs(), Runtime: f.trial.Subject.Target.Runtime,
		Dir: dir, Cores: f.lab.Layout.Load, Tools: f.lab.Tools}
	if len(f.proc.Parts) > 1 {
		s.PIDs = []int{p.PID}
	}
	if f.pprof {
		s.PprofURL = "http://" + f.address(part, f.pages[part]) + "/debug/pprof/"
	}
	return s, os.MkdirAll(dir, 0o755)
}

// endProfiles ends all profiles in parallel, so that no profile continues while another is read,
// and saves them.
func (f *life) endProfiles(shots []*shot) {
	bounded, cancel := context.WithTimeout(context.Background(), profileWait)
	defer cancel()
	var ending sync.WaitGroup
	for _, s := range shots {
		if s.session == nil {
			continue
		}
		ending.Go(func() {
			s.out.DurationNs = clock.Mono() - s.began
			if err := f.save(bounded, s); err != nil {
				s.out.File, s.out.Failed = "", err.Error()
			}
		})
	}
	ending.Wait()
	for _, s := range shots {
		f.rec.Profiles = append(f.rec.Profiles, s.out)
	}
}

func (f *life) save(ctx context.Context, s *shot) error {
	observed, err := s.session.Stop(ctx)
	if err != nil {
		return err
	}
	s.out.Tool, s.out.Samples = profile.Tool(observed), profile.Samples(observed)
	name := strings.Join([]string{f.trial.ID, s.out.Load, s.out.Process, s.out.Kind}, ".")
	name = strings.ReplaceAll(strings.ReplaceAll(name, "..", "."), " ", "-")
	s.out.File = filepath.Join(profileDir, name+".pb.gz")
	return files.Write(filepath.Join(f.lab.Dir, s.out.File), observed.Write)
}
