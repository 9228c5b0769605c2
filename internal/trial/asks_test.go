package trial_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service/counters"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// askMeter is a counter with a rate per second of the bubble: load's from the load's begin on, and
// always that of others. After some readings it fails.
type askMeter struct {
	load, others float64
	begun        func() bool
	left         int
	closed       bool
	told         *[]string // one entry per reading
	last, sum    float64
}

func (m *askMeter) Read(context.Context) (float64, error) {
	*m.told = append(*m.told, "read")
	if m.left--; m.left < 0 {
		return 0, errors.New("connection refused")
	}
	now := float64(clock.Mono()) / 1e9
	perS := m.others
	if m.begun() {
		perS += m.load
	}
	m.sum += (now - m.last) * perS
	m.last = now
	return m.sum, nil
}
func (m *askMeter) What() string        { return "statements" }
func (m *askMeter) Late() time.Duration { return 0 }
func (m *askMeter) Close()              { m.closed = true }

// marked is a watcher that records marks at the ends of windows.
type marked struct {
	trial.Watcher
	told *[]string
}

func (m marked) MarkPSS() probe.Mark {
	*m.told = append(*m.told, "mark")
	return m.Watcher.MarkPSS()
}

func tellMarks(l *trial.Lab, told *[]string) {
	watch := l.Watch
	l.Watch = func(p launch.Process, every time.Duration) (trial.Watcher, error) {
		of, err := watch(p, every)
		return marked{of, told}, err
	}
}

// near returns a count, or the wanted one if they are almost equal.
func near(got, want float64) float64 {
	if math.Abs(got-want) < 1e-3 {
		return want
	}
	return got
}

// whateverAsked returns a good result at a rate, also for a load that requests another.
func whateverAsked(s load.Spec, rate float64) record.Load {
	s.Schedule.Rate = pace.Flat(rate)
	return trialtest.Good(s, rate)
}

// A counter is read before the load and at the edges of each window, and the record has its count
// and the expected count. Each load has 1,000 responses a second, whatever it requests.
func TestCounterOfATrial(t *testing.T) {
	check := func(m *askMeter, want record.BackendCalls, grade string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.offer = trialtest.Load{Rate: rate, Result: whateverAsked}.Offer
			m.begun = func() bool { return slices.Contains(w.notes, "load warmup") }
			var opened counters.Place
			var told []string
			m.told = &told
			tellMarks(w.lab, &told)
			w.lab.Counter = func(c counters.Place) (counters.Counter, error) {
				opened = c
				m.last = float64(clock.Mono()) / 1e9
				return m, nil
			}
			e := w.experiment("a")
			subject := e.Subjects["a"]
			subject.Target.Counters = map[string]counters.Place{
				"db":    {Postgres: "postgres://{host}:{port}/x"},
				"other": {Postgres: "of which no request wants anything"}}
			e.Subjects["a"] = subject
			e.Plan.Suite.Scenarios[0].Requests[0].BackendCalls = map[string]int{"db": 2, "none": 1}
			records, err := w.run(context.Background(), e)
			if err != nil || len(records) != 1 || len(records[0].Loads) != 2 {
				t.Fatalf("%d records, error %v", len(records), err)
			}
			if opened.Postgres != "postgres://127.0.0.1:8080/x" || !m.closed {
				t.Errorf("opened %+v, closed %v", opened, m.closed)
			}
			for _, l := range records[0].Loads {
				if len(l.BackendCalls) != 1 {
					t.Fatalf("%s asks %+v", l.Name, l.BackendCalls)
				}
				got := l.BackendCalls[0]
				got.Count = near(got.Count, want.Count)
				got.IdlePerS = near(got.IdlePerS, want.IdlePerS)
				if got != want {
					t.Errorf("%s asks %+v, want %+v", l.Name, got, want)
				}
			}
			// The service's usage is marked at the window's end, however long counters take.
			if m.left >= 0 && strings.Join(told, " ") != "read read read mark read read mark read" {
				t.Errorf("in order: %v", told)
			}
			found := record.Valid
			for _, f := range records[0].Verdict.Findings {
				if f.Rule == "backend calls" {
					found = f.Grade
				}
			}
			if found != grade {
				t.Errorf("unasked is %s, want %s", found, grade)
			}
		})
	}
	const many = 1000
	of := record.BackendCalls{Counter: "db", Unit: "statements", IntervalNs: 1e9, Expected: 2000}
	asks := of
	asks.Count = 2000
	check(&askMeter{load: 2000, left: many}, asks, record.Valid)
	asks.Count = 1000 // one of the two requests
	check(&askMeter{load: 1000, left: many}, asks, record.Invalid)
	asks.Count, asks.IdlePerS = 2500, 1500
	check(&askMeter{load: 1000, others: 1500, left: many}, asks, record.Suspect)
	check(&askMeter{load: 2000, left: 1}, record.BackendCalls{Counter: "db", IntervalNs: 1e9,
		Error: "connection refused"}, record.Valid)
}
