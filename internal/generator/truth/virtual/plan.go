package virtual

import (
	"math"
	"syscall"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/load"
)

// Plan returns a Serve function that responds like truth.Serve on a network without delay. The
// server has one thread: it accepts no requests while it burns processor time.
func Plan(p truth.Plan) func(Call) Reply {
	busy := int64(math.MinInt64) // the thread burns processor time until then
	return func(c Call) Reply {
		r, last := truth.Parse([]byte(c.Text))
		r.N, r.OnConn = int64(c.N), int64(c.OnConn)
		busy = max(busy, c.At)
		out := p(busy, r)
		switch {
		case out.At == truth.Never:
			return Reply{}
		case out.Burn > 0 && out.At > busy:
			panic("virtual: a plan uses CPU time later than at the arrival of the request")
		}
		busy += int64(out.Burn)
		out.At += int64(out.Burn)
		if last && out.Then == truth.Keep {
			out.Then = truth.Close
		}
		return reply(c.At, out)
	}
}

// reply converts a plan's reply to a request that arrived at came.
func reply(came int64, r truth.Reply) Reply {
	out := Reply{After: time.Duration(r.At - came), End: r.Then != truth.Keep, Op: load.Reading}
	if r.Then == truth.Reset {
		out.Err = syscall.ECONNRESET
	}
	text := string(r.Text)
	if r.Step > 0 {
		out.Gap = r.Step
		out.Pieces = append(out.Pieces, text[:r.First])
		for _, b := range []byte(text[r.First:]) {
			out.Pieces = append(out.Pieces, string([]byte{b}))
		}
	} else if text != "" {
		out.Pieces = []string{text}
	}
	return out
}

// Serve returns a world whose server runs a plan.
func Serve(p truth.Plan) *World { return &World{Serve: Plan(p)} }
