package driver

import (
	"strings"

	"prony/internal/result"
)

// command is a program to run.
type command struct {
	argv []string
	env  []string // beside our own
}

// output is what became of one.
type output struct {
	text, errs []byte // of its two streams
	exit       int
	elapsedNs  int64
	cpuNs      int64 // user and system, of it and of those it waited for (wait4(2))
	rssBytes   int64 // the largest of them
	switches   int64 // forced ones
}

// tailMax bounds what an error quotes of a tool's output.
const tailMax = 400

// tail is the end of what the tool said, on one line.
func (o *output) tail() string {
	s := strings.Join(strings.Fields(string(o.text)+" "+string(o.errs)), " ")
	if s == "" {
		return "nothing"
	}
	if len(s) > tailMax {
		s = "…" + s[len(s)-tailMax:]
	}
	return s
}

// generator is what the tool's processes took. Their processor time is that of their whole life,
// start and report included, since a tool does not say what its window took.
func (o *output) generator(t *tool, j *job, l *result.Load) result.Gen {
	g := result.Gen{
		Engine:       t.name,
		EngineReason: "foreign driver; its CPU time is that of its whole process, start included",
		Pacing:       t.measures,
		CPUNs:        o.cpuNs, MemoryBytes: o.rssBytes, SwitchesForced: o.switches,
		CPUShare: float64(o.cpuNs) / float64(o.elapsedNs) / float64(max(len(j.spec.Cores), 1)),
		Priority: "unknown",
	}
	if n := l.Done + l.Errors.Total(); n > 0 {
		g.CPUPerRequestNs = float64(o.cpuNs) / float64(n)
	}
	return g
}
