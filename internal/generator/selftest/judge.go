package selftest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/stats"
)

// Machine is what the machine did while a case ran. None of it comes from the times that the
// generator measured: the kernel counts it, a clock of its own records it, or the server does.
type Machine struct {
	TimeNs       int64 `json:"timeNs"`       // how long the load took, with lead-in and drain
	LoadWaitNs   int64 `json:"loadWaitNs"`   // threads of the load were ready to run and waited
	BesideWaitNs int64 `json:"besideWaitNs"` // other threads of the load's process waited
	ServerWaitNs int64 `json:"serverWaitNs"` // the server's thread was ready to run and waited
	ServerLateNs int64 `json:"serverLateNs"` // the sum of how late the server sent answers
	Load         Cores `json:"load"`         // cores of the load
	Service      Cores `json:"service"`      // cores of the server
	// Ahead means that the load and the server run ahead of ordinary processes on their cores.
	Ahead bool `json:"ahead"`
	// StallsWay is how stalls were recorded, and StallsMissing why they were not.
	StallsWay     string `json:"stallsWay,omitempty"`
	StallsMissing string `json:"stallsMissing,omitempty"`
	// Stalls are those of all cores in use, but for those in which processes of others ran.
	Stalls    []stats.Stall `json:"-"`
	Processes []stats.Stall `json:"-"`
}

// Cores is what the machine did on some cores.
type Cores struct {
	StealNs   int64 `json:"stealNs"`             // the hypervisor took them
	OthersNs  int64 `json:"othersNs"`            // processor time of other programs
	StalledNs int64 `json:"stalledNs,omitempty"` // recorded stalls took, without processes
}

// StealStepNs is the step in which the kernel counts steal (proc_stat(5)).
const StealStepNs = int64(10 * time.Millisecond)

// waits is the longest time for which a thread on some cores can have been kept waiting: what the
// kernel counted as its run delay and what the hypervisor took, or what stalls took by their record
// if that is more. Without precedence, a thread may also wait whenever other processes run, because
// kernels since Linux 6.12 count only a part of this waiting.
func (m *Machine) waits(runDelayNs int64, c Cores) float64 {
	wait := runDelayNs
	if !m.Ahead {
		wait = max(wait, c.OthersNs)
	}
	if c.StealNs > 0 {
		wait += c.StealNs + StealStepNs // a part of the last step is not counted
	}
	return float64(max(wait, c.StalledNs))
}

// stalls are those that can have delayed threads of the load or of the server.
func (m *Machine) stalls() []stats.Stall {
	if m.Ahead || len(m.Stalls) == 0 && len(m.Processes) == 0 {
		return m.Stalls
	}
	return slices.Concat(m.Stalls, m.Processes)
}

// slice is about how long Linux has a process run before others.
const slice = int64(4 * time.Millisecond)

// longestNs is how long one wait takes at most, of waits that take so much time in all: a slice of
// another process, or what the hypervisor usually takes. Threads that run ahead of other processes
// wait seldom, but sometimes for long, such as when the kernel gives other processes their
// twentieth of the time: all may be one wait.
func (m *Machine) longestNs(waitNs float64) int64 {
	switch {
	case m.Ahead:
		return max(slice, int64(waitNs))
	case m.Load.StealNs+m.Service.StealNs > 0:
		return StealStepNs
	}
	return slice
}

func (m *Machine) loadNs() float64   { return m.waits(m.LoadWaitNs, m.Load) }
func (m *Machine) serverNs() float64 { return m.waits(m.ServerWaitNs, m.Service) }

// bothNs is what both sides can have waited, with stalls and without.
func (m *Machine) bothNs() (waitNs, quietNs float64) {
	return m.loadNs() + m.serverNs(), float64(m.LoadWaitNs + m.ServerWaitNs)
}

// String describes the disturbance in figures.
func (m *Machine) String() string {
	timeNs := float64(max(m.TimeNs, 1))
	parts := []string{fmt.Sprintf("load and server waited for a CPU for %.1f and %.1f %% of the "+
		"time", 100*m.loadNs()/timeNs, 100*m.serverNs()/timeNs)}
	if m.StallsWay != "" {
		parts = append(parts, fmt.Sprintf("stalls of the machine took %.1f and %.1f %% of the time",
			100*float64(m.Load.StalledNs)/timeNs, 100*float64(m.Service.StalledNs)/timeNs))
	}
	if ns := m.Load.StealNs + m.Service.StealNs; ns > 0 {
		parts = append(parts, fmt.Sprintf("the hypervisor took %v of CPU time from their cores",
			time.Duration(ns)))
	}
	parts = append(parts, fmt.Sprintf("other programs used %.2f CPUs",
		float64(m.Load.OthersNs+m.Service.OthersNs)/timeNs))
	if m.ServerLateNs > 0 {
		parts = append(parts, fmt.Sprintf("the server sent responses late by %v in total",
			time.Duration(m.ServerLateNs).Round(time.Microsecond)))
	}
	return strings.Join(parts, ", ")
}

// judge compares the lines with their limits. The machine can only delay: a number is disturbed if
// it is within its limit of a value that the delays can have made of the known one, and wrong if
// not. If stalls were recorded, arrivals near them are left out first.
func (c *Case) judge(m *measured) Outcome {
	out := Outcome{Case: c.Name, Known: c.Known, State: OK, Lines: c.lines(c, m),
		Machine: m.machine}
	for i := range out.Lines {
		l := &out.Lines[i]
		l.State = l.judge()
		if l.State == Wrong || l.State == Disturbed && out.State == OK {
			out.State = l.State
		}
	}
	if out.State == Disturbed {
		out.Disturbed = m.machine.String()
	}
	return out
}

func (l *Line) judge() string {
	low, high := l.Lowest-l.Limit*math.Abs(l.Lowest), l.Highest+l.Limit*math.Abs(l.Highest)
	switch {
	case l.OK:
		return OK
	case l.Lowest < l.Highest && l.Measured >= low && l.Measured <= high:
		return Disturbed
	}
	return Wrong
}

// between sets what the machine can have made of a known number.
func (l Line) between(lowest, highest float64) Line {
	l.Lowest, l.Highest = min(l.Lowest, lowest), max(l.Highest, highest)
	return l
}

// answers are the response times that an open load must measure in its window, in the order in
// which requests were due, and how much the machine can have delayed them.
type answers struct {
	due, response []int64 // due by clock.Mono
	sorted        []int64 // response times
	limits        delays
	quiet         delays // without what stalls did
	m             *measured
}

// delays are how much the machine can have delayed answers.
type delays struct {
	sumNs     float64 // of all answers
	longestNs float64 // of one answer
}

// newAnswers takes how long threads that handle these answers can have waited for a processor, with
// stalls of the machine and without, and the sum of how late the server sent them.
func newAnswers(m *measured, due, response []int64, waitNs, quietNs, lateNs float64) *answers {
	a := &answers{due: due, response: response, m: m,
		sorted: slices.Sorted(slices.Values(response))}
	n, q := a.perWait(m.machine.longestNs(waitNs)), a.perWait(m.machine.longestNs(quietNs))
	a.quiet = delays{quietNs*q + lateNs, quietNs + lateNs}
	a.limits = delays{waitNs*n + lateNs, waitNs + lateNs}
	if m.machine.StallsWay != "" { // then it is known which answers they have delayed
		stalled := a.stalled()
		a.limits = delays{a.quiet.sumNs + stalled.sumNs, a.quiet.longestNs + stalled.longestNs}
	}
	return a
}

// stalled bounds what recorded stalls have done: a request that is due in one leaves at its end,
// and an answer that comes in one is received at its end.
func (a *answers) stalled() (all delays) {
	list := a.m.machine.stalls()
	for i, due := range a.due {
		sent := afterStalls(list, due, due)
		end := sent + a.response[i]
		delay := float64(afterStalls(list, end-(sent-due), end) - due - a.response[i])
		all.sumNs += delay
		all.longestNs = max(all.longestNs, delay)
	}
	return all
}

// afterStalls is the end of the latest of the stalls that something meets which happens between two
// moments, at the later one if there is none.
func afterStalls(list []stats.Stall, from, to int64) int64 {
	end := to
	for _, s := range list {
		if s.BeginNs <= to && s.EndNs > from {
			end = max(end, s.EndNs)
		}
	}
	return end
}

// perWait is how many answers one wait for a processor delays: the mean number of answers that
// leave within the longest wait after one has left.
func (a *answers) perWait(longest int64) float64 {
	ends := make([]int64, len(a.due))
	for i, atNs := range a.due {
		ends[i] = atNs + a.response[i]
	}
	slices.Sort(ends)
	sum, next := 0, 0
	for i, ns := range ends {
		for next < len(ends) && ends[next] <= ns+longest {
			next++
		}
		sum += next - i
	}
	return float64(sum) / float64(max(len(ends), 1))
}

func (a *answers) mean(formula string, known, got, limit float64) Line {
	return a.compare(line("mean", formula, Ns, known, got, limit), mean,
		func(d delays) float64 { return d.sumNs / float64(max(len(a.response), 1)) })
}

func (a *answers) quantile(name, formula string, q, known float64, got int64,
	limit float64) Line {
	return a.compare(line(name, formula, Ns, known, got, limit),
		func(ns []int64) float64 { return float64(distribution(ns).ValueAtQuantile(100 * q)) },
		func(d delays) float64 { return raised(a.sorted, q, d.sumNs) })
}

func (a *answers) longest(formula string, known float64, got int64, limit float64) Line {
	return a.compare(line("longest", formula, Ns, known, got, limit),
		func(ns []int64) float64 { return float64(distribution(ns).Max()) },
		func(d delays) float64 { return d.longestNs })
}

// above counts the answers that take longer than a threshold.
func (a *answers) above(name, formula string, threshold time.Duration, known float64,
	got int64, limit float64) Line {
	l := line(name, formula, Plain, known, got, limit)
	return l.between(known, known+lifted(a.sorted, int64(threshold), a.limits.sumNs))
}

func mean(ns []int64) float64 {
	sum := 0.0
	for _, x := range ns {
		sum += float64(x)
	}
	return sum / float64(max(len(ns), 1))
}

// raised is by how much delays of some sum in all can raise a quantile: all of it goes to the
// answers from the quantile's rank on, until they are as long as each other.
func raised(sorted []int64, q, sumNs float64) float64 {
	if len(sorted) == 0 || sumNs <= 0 {
		return 0
	}
	top := sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0):]
	level := float64(top[0])
	for i := 1; i <= len(top); i++ {
		room := sumNs // what remains if all before i are raised to the next one
		if i < len(top) {
			room = min(room, float64(i)*(float64(top[i])-level))
		}
		level += room / float64(i)
		if sumNs -= room; sumNs <= 0 {
			break
		}
	}
	return level - float64(top[0])
}

// lifted is how many answers delays of some sum can lift above a threshold.
func lifted(sorted []int64, threshold int64, sumNs float64) (n float64) {
	index, _ := slices.BinarySearch(sorted, threshold+1)
	for i := index - 1; i >= 0; i-- {
		if sumNs -= float64(threshold + 1 - sorted[i]); sumNs < 0 {
			break
		}
		n++
	}
	return n
}

// Bounds of the comparison without arrivals near stalls.
const (
	// leastKept of the arrivals must remain.
	leastKept = 0.6
	// backlog is how long after a stall of the machine its backlog may still delay answers.
	backlog = time.Millisecond
	// alike is how far a number of the generator's single response times may be from the one that
	// it reports, which it rounds to three digits.
	alike = 0.002
)

// compare sets by how much delays can raise a line. If it is off and stalls were recorded, it
// compares again, without the arrivals near stalls. By the known times, an arrival is near a stall
// if it is unanswered in it or due until a millisecond after. They are left out of the known and of
// the measured response times alike, whatever was measured.
func (a *answers) compare(l Line, value func(ns []int64) float64,
	most func(delays) float64) Line {
	l = l.between(l.Known, l.Known+most(a.limits))
	if l.OK || len(a.m.machine.stalls()) == 0 {
		return l
	}
	known, measured := a.withoutStalls()
	share := float64(len(known)) / float64(max(len(a.due), 1))
	// A number that is not that of the single times is off whatever the machine did. One that rests
	// on a few long answers may lose them: a long answer meets more stalls.
	if share < leastKept || math.Abs(value(a.m.Sample.Response)/l.Measured-1) > alike ||
		value(known) < l.Known/2 {
		return l
	}
	l.Known, l.Measured = value(known), value(measured)
	if share < 1 {
		l.KeptShare = share
	}
	l.compare()
	l.Lowest, l.Highest = l.Known, l.Known+most(a.quiet)
	return l
}

// withoutStalls are the known and the measured response times of arrivals that are not near a
// stall; none, if one has no answer.
func (a *answers) withoutStalls() (known, measured []int64) {
	all := a.m.Sample.Response
	if len(all) != len(a.due) || slices.Contains(all, 0) {
		return nil, nil
	}
	near := stats.Exclude(a.m.machine.stalls(), stats.Margins{AfterNs: int64(backlog)})
	for i, due := range a.due {
		end := due + a.response[i]
		if !slices.ContainsFunc(near, func(x stats.Interval) bool {
			return due < x.ToNs && end >= x.FromNs
		}) {
			known, measured = append(known, a.response[i]), append(measured, all[i])
		}
	}
	return known, measured
}

// steady bounds what the machine can do to a load whose requests all have the same known time.
type steady struct {
	connections int
	answers     int64   // in the window
	delaysNs    float64 // in all
}

// meanDelay is the mean delay of an answer.
func (s steady) meanDelay() float64 { return s.delaysNs / float64(max(s.answers, 1)) }

func (s steady) throughput(formula string, known, got, limit float64) Line {
	slow := float64(s.connections) / (float64(s.connections)/known + s.meanDelay()/1e9)
	return line("throughput", formula, PerS, known, got, limit).between(slow, known)
}

func (s steady) mean(name, formula string, known, got, limit float64) Line {
	return line(name, formula, Ns, known, got, limit).between(known, known+s.meanDelay())
}

// p99 needs the delays in a hundredth of the answers.
func (s steady) p99(formula string, known float64, got int64, limit float64) Line {
	return line("p99", formula, Ns, known, got, limit).between(known, known+s.meanDelay()*100)
}
