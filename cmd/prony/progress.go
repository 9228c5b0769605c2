//go:build linux && !portable

package main

import (
	"fmt"
	"io"
	"math"
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
// more line below with the progress of the whole run and the current step. Elsewhere it adds a line
// with them after a minute without any. It writes only between steps and once a second, so that its
// cost is negligible.
type progressLine struct {
	mu   sync.Mutex
	w    io.Writer
	live bool // a terminal: the last line is rewritten

	began    int64
	total    int
	ended    int
	endedAt  int64         // when the last trial ended, or the first one began
	together int           // trials of a start
	share    float64       // of the run; it never falls, although estimates change
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
	for _, t := range p.Trials {
		if t.Start != "" && t.Start == p.Trials[0].Start {
			s.together++
		}
	}
	least, most := p.Estimate()
	s.estimate = most
	if p.Suite.For > 0 {
		s.total = 0
	}
	s.live = isScreen(s.w)
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

// silence is the time without a line after which a pipe gets one with the progress.
const silence = time.Minute

// renew replaces the line of the current step by a text that stays, and draws the line again below.
func (s *progressLine) renew(text string) {
	s.wipe()
	fmt.Fprint(s.w, text)
	s.draw()
	if text != "" && s.ticks != nil && !s.live {
		s.ticks.Reset(silence)
	}
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
		s.endedAt = s.began
		every := silence
		if s.live {
			every = time.Second
		}
		s.ticks = time.AfterFunc(every, s.tick)
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
		s.doing, s.endedAt = "", clock.Mono()
		text = fmt.Sprintf("%s %s\n", s.count(), lab.Digest(e.Record))
	}
	s.renew(text)
}

func (s *progressLine) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ticks == nil: // the run has ended meanwhile
	case s.live:
		s.renew("")
		s.ticks.Reset(time.Second)
	case s.doing == "":
		s.ticks.Reset(silence)
	default:
		s.renew(s.status(clock.Mono(), 0) + "\n")
	}
}

func (s *progressLine) wipe() {
	if s.live {
		fmt.Fprint(format.Raw(s.w), "\r\x1b[K")
	}
}

// draw writes the line of the run and its current step. The terminal may have another width by now.
func (s *progressLine) draw() {
	if !s.live || s.doing == "" {
		return
	}
	width := textOptions(s.w).Width
	if width <= 20 {
		width = 80
	}
	text := s.status(clock.Mono(), min(width/8, 30))
	if runes := []rune(text); len(runes) >= width {
		text = string(runes[:width-1])
	}
	fmt.Fprint(s.w, text)
}

// status describes the progress of the run and its current step, after a bar of this many columns.
func (s *progressLine) status(now int64, bar int) string {
	share, left := s.course(now)
	s.share = max(s.share, share)
	full := int(s.share * float64(bar))
	text := strings.Repeat("━", full) + strings.Repeat("─", bar-full) +
		fmt.Sprintf("%3.0f %%", math.Floor(100*s.share))
	if left >= time.Second { // otherwise it takes longer than estimated
		text += " · " + units.Roughly(left) + " left"
	}
	text += " · " + strings.TrimSpace(s.count()) + " · " + s.doing
	if s.expect > 0 {
		left := s.expect - time.Duration(now-s.since)
		text += fmt.Sprintf(" %.0f s", max(left.Seconds(), 0))
	}
	return text + s.pulse
}

// course returns the completed share of the run and the remaining time: by the finished trials, or
// by the plan before the first one has ended. A trial or start that takes longer than the ones
// before is nearly complete until it ends.
func (s *progressLine) course(now int64) (share float64, left time.Duration) {
	const nearly = 0.95
	spent := float64(now - s.began)
	if s.total == 0 { // a time budget
		return min(spent/max(float64(s.estimate), 1), nearly),
			s.estimate - time.Duration(spent)
	}
	each := float64(s.estimate) / float64(max(s.total-s.before, 1))
	if n := s.ended - s.before; n > 0 {
		each = float64(s.endedAt-s.began) / float64(n)
	}
	part := min(float64(now-s.endedAt)/max(each, 1), nearly*float64(max(s.together, 1)))
	ended := min(float64(s.ended)+part, float64(s.total))
	return ended / float64(s.total), time.Duration(each * (float64(s.total) - ended))
}

// count formats the number of finished trials, with the total if it is known.
func (s *progressLine) count() string {
	if s.total == 0 {
		return fmt.Sprintf("%3d", s.ended)
	}
	total := fmt.Sprint(s.total)
	return fmt.Sprintf("%*d/%s", len(total), s.ended, total)
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
	from, to := units.Roughly(least), units.Roughly(most)
	if from == to {
		return "about " + to
	}
	if number, unit, _ := strings.Cut(from, " "); strings.HasSuffix(to, " "+unit) {
		from = number
	}
	return from + " to " + to
}
