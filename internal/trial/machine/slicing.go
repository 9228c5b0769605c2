package machine

import (
	"context"

	"prony.example/internal/launch"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/observe/stalls"
	"prony.example/internal/trial"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// slicing returns this machine's part of starts of several targets side by side.
func slicing() trial.Slicing {
	return trial.Slicing{
		Open: func(ctx context.Context, s load.Spec, engine string, speech *nethttp.Config) (
			trial.Loader, error) {
			if err := (load.Choice{Engine: engine, Speak: speech}).Set(&s); err != nil {
				return nil, err
			}
			l, err := load.Open(ctx, s)
			if err != nil { // a nil *load.Loader would be a non-nil Loader
				return nil, err
			}
			return l, nil
		},
		Freeze: func(p launch.Process, runsOn bool) (trial.Freezer, error) {
			way := "" // the best one that works
			if runsOn {
				way = record.FreezeOff
			}
			f, err := freeze.New(p, way)
			if err != nil { // a nil pointer would be a non-nil Freezer
				return nil, err
			}
			return f, nil
		},
		Clock: func(pids func() []int, groups []launch.Group) trial.CPUClock {
			var counters []cpuclock.Group
			for _, g := range groups {
				counters = append(counters, cpuclock.Group{Dir: g.Dir, Version: g.Version})
			}
			return cpuclock.New(pids, counters...)
		},
		Machine: func() (trial.Machine, error) {
			m, err := cpuclock.OpenMachine(nil)
			if err != nil { // a nil pointer would be a non-nil Machine
				return nil, err
			}
			return m, nil
		},
		Interrupt: func(cores []int) (trial.Interrupter, error) {
			i, err := stalls.OpenInterrupter(cores)
			if err != nil { // a nil pointer would be a non-nil Interrupter
				return nil, err
			}
			return i, nil
		},
		Stalls: stallfree.OpenReal,
	}
}
