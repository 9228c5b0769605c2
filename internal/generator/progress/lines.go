package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/load"
)

// lines writes a line for each point. If the reader is slow, points are skipped, never queued.
type lines struct {
	view   *View
	out    io.Writer
	asJSON bool
	shown  int // number of points
}

func (l *lines) draw() {
	l.view.mu.Lock()
	text := ""
	if s := l.view.state; s.points > l.shown {
		l.shown = s.points
		text = line(s)
		if l.asJSON {
			text = lineJSON(s)
		}
	}
	l.view.mu.Unlock()
	if text != "" {
		// If writing fails, the message has no reader either.
		_, _ = io.WriteString(l.out, text+"\n")
	}
}

func (*lines) close() error { return nil }

// line returns the last point in words.
func line(s *state) string {
	p := s.now
	rate := units.Rate(p.perS(p.done)) + "/s"
	if s.Open {
		rate += " of " + units.Rate(p.perS(p.due)) + "/s"
	}
	_, failed := s.failed()
	fields := []string{
		fmt.Sprintf("%7.1f s", s.elapsed.Seconds()), cell(rate, 20),
		"p50 " + cell(units.KnownDuration(p.quantileNs[0]), 8),
		"p99 " + cell(units.KnownDuration(p.quantileNs[2]), 8),
		"errors " + units.Count(failed),
	}
	if s.Open {
		fields = append(fields, "backlog "+units.Count(s.backlog()))
	} else {
		fields = append(fields, "in flight "+units.Count(s.totals.InFlight))
	}
	if phase := s.phase(); phase != measuring {
		fields = append(fields, "("+phase+")")
	}
	if text, _ := s.soFar(); text != "" {
		fields = append(fields, text)
	}
	return strings.Join(fields, "  ")
}

// jsonLine is the last point for programs: docs/formats/load-live.md.
type jsonLine struct {
	ElapsedNs  int64            `json:"elapsedNs"` // at the point's end
	Phase      string           `json:"phase"`
	IntervalNs int64            `json:"intervalNs"`
	Due        int64            `json:"due"`
	Sent       int64            `json:"sent"`
	Done       int64            `json:"done"`
	Failed     int64            `json:"failed"`
	BytesIn    int64            `json:"bytesIn"`
	Count      int64            `json:"count"` // number of response times
	P50Ns      int64            `json:"p50Ns,omitempty"`
	P90Ns      int64            `json:"p90Ns,omitempty"`
	P99Ns      int64            `json:"p99Ns,omitempty"`
	MaxNs      int64            `json:"maxNs,omitempty"`
	LagP50Ns   int64            `json:"lagP50Ns,omitempty"`
	LagP99Ns   int64            `json:"lagP99Ns,omitempty"`
	LagMaxNs   int64            `json:"lagMaxNs,omitempty"`
	InFlight   int64            `json:"inFlight"`
	Backlog    int64            `json:"backlog"`
	Errors     map[string]int64 `json:"errors,omitempty"` // since the window opened, by class
	Grade      string           `json:"grade,omitempty"`  // of the verdict on the window so far
	Rule       string           `json:"rule,omitempty"`   // that decides it
}

func lineJSON(s *state) string {
	p := s.now
	r := jsonLine{
		ElapsedNs: int64(p.moment), Phase: s.phase(), IntervalNs: int64(p.length),
		Due: p.due, Sent: p.sent, Done: p.done, Failed: p.failed, BytesIn: p.bytesIn,
		Count: p.count, P50Ns: p.quantileNs[0], P90Ns: p.quantileNs[1], P99Ns: p.quantileNs[2],
		MaxNs: p.maxNs, LagP50Ns: p.lagP50Ns, LagP99Ns: p.lagP99Ns, LagMaxNs: p.lagMaxNs,
		InFlight: s.totals.InFlight, Backlog: s.backlog(), Errors: map[string]int64{},
	}
	byClass, _ := s.failed()
	for i, n := range byClass {
		if n > 0 {
			r.Errors[load.ClassNames[i]] = n
		}
	}
	r.Grade = s.verdict.Grade
	if _, decides := s.soFar(); decides != nil {
		r.Rule = decides.Rule
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic("live: a record of integers and strings could not be encoded: " + err.Error())
	}
	return string(b)
}
