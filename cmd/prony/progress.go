//go:build linux && !portable

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/trial"
	"prony.example/internal/trial/lab"
)

// progressLine shows the progress of a run: a line for each finished trial, and on a terminal one
// more line below with the current step. It writes only between steps and once a second, so that
// its cost is negligible.
type progressLine struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool // a terminal: the last line is rewritten
	width int

	began    int64
	total    int
	ended    int
	before   int           // part of ended, of a resumed run
	estimate time.Duration // for the whole run
	doing    string
	since    int64
	expect   time.Duration
	pulse    string // state of the current load
	ticks    *time.Timer
}

// Begin implements lab.Observer. It prints the plan.
func (s *progressLine) Begin(b lab.Begun) {
	p := b.Plan
	s.total = len(p.Trials)
	least, most := p.Estimate()
	s.estimate = most
	if p.Suite.For > 0 {
		s.total = 0
	}
	s.live, s.width = isTerminal(s.w), 80
	if width := textOptions(s.w).Width; width > 20 {
		s.width = width
	}
	where := fmt.Sprintf("service on cores %v, load generator on "+
		"%v", b.Layout.Service, b.Layout.Load)
	if len(b.Layout.Backing) > 0 {
		where += fmt.Sprintf(", backing processes on %v", b.Layout.Backing)
	}
	switch {
	case b.Attached:
		where = fmt.Sprintf("load generator on %v", b.Layout.Load)
	case b.Layout.Shared:
		where = fmt.Sprintf("service and load generator share core %v", b.Layout.Load)
	}
	s.Say(fmt.Sprintf("%s: %s, seed %d; %s; %s", p.Suite.Name, extent(p), p.Suite.Seed,
		where, between(least, most)))
	if few := hurry(p); few != "" {
		s.Say("  " + few)
	}
}

// Say implements lab.Observer. It prints a line that stays.
func (s *progressLine) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(text + "\n")
}

// renew replaces the line of the current step by a text that stays, and draws the line again below.
func (s *progressLine) renew(text string) {
	s.wipe()
	fmt.Fprint(s.w, text)
	s.draw()
}

// Trial implements lab.Observer.
func (s *progressLine) Trial(e trial.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Remark != "" {
		s.renew(e.Remark + "\n")
		return
	}
	s.pulse = ""
	if p := e.Pulse; p != nil { // drawn at the next second
		s.pulse = " · " + units.Rate(p.PerS) + "/s"
		if p.P99Ns > 0 {
			s.pulse += " · p99 " + units.Duration(float64(p.P99Ns))
		}
		return
	}
	if e.Round > 0 {
		s.pulse = fmt.Sprintf(" · round %d of %d", e.Round, e.Rounds)
		return
	}
	if s.began == 0 {
		s.began = clock.Mono()
		if s.live {
			s.ticks = time.AfterFunc(time.Second, s.tick)
		}
	}
	s.doing, s.since, s.expect = e.Trial+" · "+e.Step, clock.Mono(), e.Expect
	text := ""
	if e.Before > 0 {
		s.before, s.ended, s.doing = e.Before, e.Before, ""
		s.estimate -= s.estimate * time.Duration(e.Before) / time.Duration(max(s.total, 1))
	}
	if e.Added > 0 {
		s.total, s.doing = max(s.total, s.ended+e.Added), ""
	}
	if e.Record != nil {
		s.ended++
		s.doing = ""
		text = fmt.Sprintf("%s %s\n", s.count("/"), lab.Digest(e.Record))
	}
	s.renew(text)
}

func (s *progressLine) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticks != nil { // the run has not ended meanwhile
		s.renew("")
		s.ticks.Reset(time.Second)
	}
}

func (s *progressLine) wipe() {
	if s.live {
		fmt.Fprint(format.Raw(s.w), "\r\x1b[K")
	}
}

// draw writes the line of the current step.
func (s *progressLine) draw() {
	if !s.live || s.doing == "" {
		return
	}
	now := clock.Mono()
	text := s.doing
	if s.expect > 0 {
		left := s.expect - time.Duration(now-s.since)
		text += fmt.Sprintf(" %.0f s", max(left.Seconds(), 0))
	}
	text += s.pulse
	text += fmt.Sprintf(" · %s done", s.count(" of "))
	if left := s.left(now); left >= time.Second { // otherwise it takes longer than estimated
		text += fmt.Sprintf(" · %s left", roughly(left))
	}
	if runes := []rune(text); len(runes) >= s.width {
		text = string(runes[:s.width-1])
	}
	fmt.Fprint(s.w, text)
}

// count formats the number of finished trials, with the total if it is known.
func (s *progressLine) count(of string) string {
	if s.total == 0 {
		return fmt.Sprintf("%3d", s.ended)
	}
	total := fmt.Sprint(s.total)
	if of == "/" {
		return fmt.Sprintf("%*d/%s", len(total), s.ended, total)
	}
	return fmt.Sprintf("%d%s%s", s.ended, of, total)
}

// left estimates the remaining time: by the finished trials, or by the plan before the first one.
func (s *progressLine) left(now int64) time.Duration {
	spent := time.Duration(now - s.began)
	if s.ended == s.before || s.total == 0 {
		return max(s.estimate-spent, 0)
	}
	trials := time.Duration(s.since - s.began)
	if s.doing == "" {
		trials = spent
	}
	each := trials / time.Duration(s.ended-s.before)
	return max(each*time.Duration(s.total-s.before)-spent, 0)
}

// end removes the current line.
func (s *progressLine) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.doing = ""
	if s.ticks != nil {
		s.ticks.Stop()
		s.ticks = nil
	}
}

// between formats a range of times.
func between(least, most time.Duration) string {
	from, to := roughly(least), roughly(most)
	if from == to {
		return "about " + to
	}
	if number, unit, _ := strings.Cut(from, " "); strings.HasSuffix(to, " "+unit) {
		from = number
	}
	return from + " to " + to
}

// roughly formats a duration for a reader who waits.
func roughly(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}
