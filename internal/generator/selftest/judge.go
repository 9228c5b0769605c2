package selftest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/stats"
)

// Machine describes disturbances by the machine during a case. It is independent of the generator's
// measurements: its sources are the kernel, a separate clock and the server.
type Machine struct {
	TimeNs       int64 `json:"timeNs"`       // duration of the load, with lead-in and drain
	LoadWaitNs   int64 `json:"loadWaitNs"`   // the load's threads were runnable but waited
	BesideWaitNs int64 `json:"besideWaitNs"` // other threads of the load's process waited
	ServerWaitNs int64 `json:"serverWaitNs"` // the server's thread was runnable but waited
	ServerLateNs int64 `json:"serverLateNs"` // sum of the delays of the server's responses
	Load         Cores `json:"load"`         // cores of the load
	Service      Cores `json:"service"`      // cores of the server
	// Ahead means that the load and the server have priority over ordinary processes on their
	// cores.
	Ahead bool `json:"ahead"`
	// Idle is what idle cores did, as record.Provenance.Idle; empty: they halted.
	Idle string `json:"idle,omitempty"`
	// StallsWay is how stalls were recorded, and StallsMissing why they were not.
	StallsWay     string `json:"stallsWay,omitempty"`
	StallsMissing string `json:"stallsMissing,omitempty"`
	// Stalls are the stalls of all cores in use; Processes are the stalls in which other processes
	// ran.
	Stalls    []stats.Stall `json:"-"`
	Processes []stats.Stall `json:"-"`
}

// Cores describes the use of some cores.
type Cores struct {
	StealNs   int64 `json:"stealNs"`             // stolen by the hypervisor
	OthersNs  int64 `json:"othersNs"`            // processor time of other programs
	StalledNs int64 `json:"stalledNs,omitempty"` // recorded stalls, without those by processes
}

// StealStepNs is the resolution of the kernel's steal time (proc_stat(5)).
const StealStepNs = int64(10 * time.Millisecond)

// waits returns the longest time for which a thread on some cores may have waited: the kernel's run
// delay plus stolen time, or the recorded stalls if these are longer. Without priority, a thread
// may also wait whenever other processes run, because kernels since Linux 6.12 count only a part of
// that.
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

// stalls returns the stalls that may have delayed threads of the load or of the server.
func (m *Machine) stalls() []stats.Stall {
	if m.Ahead || len(m.Stalls) == 0 && len(m.Processes) == 0 {
		return m.Stalls
	}
	return slices.Concat(m.Stalls, m.Processes)
}

// slice is the approximate time for which Linux runs a process before others.
const slice = int64(4 * time.Millisecond)

// longestNs returns the longest possible single wait if all waits took waitNs: a time slice of
// another process, or a typical steal. Threads with priority wait seldom but sometimes long, for
// example when the kernel gives other processes their twentieth of the time; then all may be one
// wait.
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

// bothNs returns the time for which both sides may have waited, with and without stalls.
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

// judge compares the lines with their limits. The machine can only cause delays. A number is
// disturbed if it is within its limit of a value that delays may have caused, and wrong otherwise.
// If stalls were recorded, arrivals near them are excluded first.
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

// between sets the range in which the machine may have moved a known number.
func (l Line) between(lowest, highest float64) Line {
	l.Lowest, l.Highest = min(l.Lowest, lowest), max(l.Highest, highest)
	return l
}

// answers are the response times that an open load must measure in its window, in the order of
// arrivals, and limits of the machine's delays.
type answers struct {
	due, response []int64 // due by clock.Mono
	sorted        []int64 // response times
	limits        delays
	quiet         delays // without the effect of stalls
	m             *measured
}

// delays are limits of the machine's delays of responses.
type delays struct {
	sumNs     float64 // of all responses
	longestNs float64 // of one response
}

// newAnswers computes the limits from the longest time for which threads may have waited for a
// core, with and without the machine's stalls, and the sum of delays of the server's responses.
func newAnswers(m *measured, due, response []int64, waitNs, quietNs, lateNs float64) *answers {
	a := &answers{due: due, response: response, m: m,
		sorted: slices.Sorted(slices.Values(response))}
	n, q := a.perWait(m.machine.longestNs(waitNs)), a.perWait(m.machine.longestNs(quietNs))
	a.quiet = delays{quietNs*q + lateNs, quietNs + lateNs}
	a.limits = delays{waitNs*n + lateNs, waitNs + lateNs}
	if m.machine.StallsWay != "" { // then the delayed responses are known
		stalled := a.stalled()
		a.limits = delays{a.quiet.sumNs + stalled.sumNs, a.quiet.longestNs + stalled.longestNs}
	}
	return a
}

// stalled returns limits of the effect of recorded stalls: a request that is due in a stall is sent
// at its end, and a response that arrives in a stall is received at its end.
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

// afterStalls returns the end of the latest stall that overlaps an event between from and to, or to
// if none does.
func afterStalls(list []stats.Stall, from, to int64) int64 {
	end := to
	for _, s := range list {
		if s.BeginNs <= to && s.EndNs > from {
			end = max(end, s.EndNs)
		}
	}
	return end
}

// perWait returns the number of responses that one wait for a core delays: the mean number of
// responses that end within the longest wait after one has ended.
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

// above counts the responses above a threshold.
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

// raised returns the amount by which delays with a given sum may raise a quantile: all of the sum
// goes to the responses from the quantile's rank on, which become equally long.
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

// lifted returns the number of responses that delays with a given sum may raise above a threshold.
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

// Limits of the comparison without arrivals near stalls.
const (
	// leastKept is the share of arrivals that must remain.
	leastKept = 0.6
	// backlog is the time after a stall in which its backlog may still delay responses.
	backlog = time.Millisecond
	// alike is the permitted relative difference between a number of the generator's single
	// response times and the one that it reports with three digits.
	alike = 0.002
)

// compare sets how much delays may raise a line. If the line is off and stalls were recorded, it
// compares again without arrivals near stalls. An arrival is near a stall if, by the known times,
// it is unanswered during the stall or due up to a millisecond after. Known and measured response
// times of such arrivals are both excluded, whatever was measured.
func (a *answers) compare(l Line, value func(ns []int64) float64,
	most func(delays) float64) Line {
	l = l.between(l.Known, l.Known+most(a.limits))
	if l.OK || len(a.m.machine.stalls()) == 0 {
		return l
	}
	known, measured := a.withoutStalls()
	share := float64(len(known)) / float64(max(len(a.due), 1))
	// If the reported number does not match the single times, the machine is not the cause. A
	// number that depends on a few long responses may lose them, because long responses overlap
	// more stalls.
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

// withoutStalls returns the known and the measured response times of arrivals that are not near a
// stall; none if one has no response.
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

// steady limits the machine's influence on a load whose requests all have the same known time.
type steady struct {
	connections int
	answers     int64   // number in the window
	delaysNs    float64 // sum
}

// meanDelay returns the mean delay of a response.
func (s steady) meanDelay() float64 { return s.delaysNs / float64(max(s.answers, 1)) }

func (s steady) throughput(formula string, known, got, limit float64) Line {
	slow := float64(s.connections) / (float64(s.connections)/known + s.meanDelay()/1e9)
	return line("throughput", formula, PerS, known, got, limit).between(slow, known)
}

func (s steady) mean(name, formula string, known, got, limit float64) Line {
	return line(name, formula, Ns, known, got, limit).between(known, known+s.meanDelay())
}

// p99 compares a p99. It moves if a hundredth of the responses have all the delays.
func (s steady) p99(formula string, known float64, got int64, limit float64) Line {
	return line("p99", formula, Ns, known, got, limit).between(known, known+s.meanDelay()*100)
}
