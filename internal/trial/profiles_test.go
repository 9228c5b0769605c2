package trial_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"prony.example/internal/observe/profile"
	"prony.example/internal/service"
	"prony.example/record"
)

// TestProfilesOfASystem checks that each process of a system has a profile of its own.
func TestProfilesOfASystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		port := 8080
		w.lab.Port = func() (int, error) { port++; return port, nil }
		var subjects []profile.Subject
		w.lab.Profiler = func(s profile.Subject, _, _ string) (profile.Collector, error) {
			subjects = append(subjects, s)
			return &sampler{w: w}, nil
		}
		e := w.watching("observe: {profile: [cpu]}\n", nil)
		e.Subjects["a"].Service.Run.Processes = []service.Process{
			{Name: "back", Command: []string{"back"}, Ready: "/ready"},
			{Name: "front", Command: []string{"front"}, Ready: "/ready"},
		}
		records, err := w.run(context.Background(), e)
		if err != nil || records[0].Outcome != record.Measured || len(subjects) == 0 {
			t.Fatal(err, records[0].Failure, len(subjects))
		}
		for _, s := range subjects {
			if !slices.Equal(s.PIDs, []int{s.PID}) {
				t.Errorf("processes %v, want %d", s.PIDs, s.PID)
			}
		}
	})
}
