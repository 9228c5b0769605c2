package stats

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Reasons why a quantile without stalls is unknown.
const (
	// TooMuchExcluded: fewer than LeastShare of the arrivals remain.
	TooMuchExcluded = "too much excluded"
	// StallsDepend: stalls strike more often, or less often, while the service pauses, so that what
	// is left out is not typical.
	StallsDepend = "stalls depend on the service"
	// UnrecordedStalls: stalls that are too short to be recorded may have moved the quantile.
	UnrecordedStalls = "stalls too short to record"
	// TooFewArrivals: the quantile's rank does not exist, or stalls overtook the slowest answers,
	// so that the others do not reach it.
	TooFewArrivals = "too few arrivals"
)

// LeastShare of the arrivals must remain.
const LeastShare = 0.6

// ignorable has how long ignored stalls may be, as a share of the quantile, and the share of the
// arrivals that must then remain. The first pair that achieves its share applies. The first one
// makes most targets comparable, whose shares must not differ by more than a tenth; the second one
// makes a quantile known.
var ignorable = []struct{ length, share float64 }{{0.1, 0.9}, {0.2, LeastShare}}

const (
	// The margins of the first pass, which only has to find the margins of the second.
	firstBeforeNs = 10_000_000
	firstAfterNs  = 20_000_000

	// negligible bounds what stalls that exclude nothing can do to a quantile: delay it by this
	// share of its value, or move its rank by this share of the arrivals above it.
	negligible = 0.02

	// mostLower bounds by which share of the value the true quantile may be lower because of
	// unrecorded stalls.
	mostLower = 0.2

	// dependentP is the significance at which stalls depend on the service.
	dependentP = 0.001
)

// OpenLoad is what a target did under an open load, in one slice or in several.
type OpenLoad struct {
	Arrivals []Arrival // in the order in which they were due
	// Disturbed arrivals were due in other slices, of which nothing counts but StallFree.RawNs.
	Disturbed []Arrival
	Stalls    []Stall // of all cores in use, the load's included, in any order
	TimeNs    int64   // how long the load was offered: the sum of the slices
	// Utilization is the share of its cores that the service used, 0 to 1; negative: unknown.
	Utilization float64
	// ShortestNs is the length from which on stalls are always recorded; 0: not known.
	ShortestNs int64
}

// StallFree is a quantile of response times without what stalls did to them.
type StallFree struct {
	ValueNs int64  // the quantile; if it is unknown, only to show
	RawNs   int64  // of all arrivals
	Unknown string // one of the reasons above; "" if the value is known
	// LowestNs bounds the true quantile from below, if unrecorded stalls took as much time as
	// OpenLoad.Stalls say at most, with the ignored stalls. ValueNs bounds it from above.
	LowestNs int64
	// LowerFrom has, for each of LowerSteps, the share of the time that unrecorded stalls must take
	// to make such a difference to the quantile; nil if there are too few arrivals.
	LowerFrom []float64
	// HalfNs and DoubleNs are the quantile with half and twice of the time after stalls.
	HalfNs, DoubleNs int64
	Share            float64 // of the arrivals that are not left out
	Margins          Margins
	Stalls           int     // those that exclude arrivals
	Negligible       int     // those that do not, because they cannot move the quantile
	IgnoredStalls    int     // those that do not, because too few arrivals would remain
	Strikes          Strikes // how stalls depend on the service

	quantile float64
	relevant []Stall // that exclude arrivals
}

// QuantileOf returns the quantile of other response times to the same arrivals, with the same of
// them left out.
func (r StallFree) QuantileOf(arrivals []Arrival) int64 {
	times := follow(arrivals, clusters(r.relevant, r.Margins)).distribution()
	ns, _ := times.quantile(r.quantile)
	return ns
}

// WithoutStalls returns the q-quantile (0.99 is p99) of the response times, without stalls.
//
// A first pass with generous margins gives the quantile and the mean response time. A second pass
// with margins from these values gives the result.
//
// An arrival that was due while a stall or its backlog lasted is left out. The margin after a stall
// is Margins.After. An arrival that was due before counts until the stall begins: if it is not
// answered then, only that is known of its response time (followed.distribution).
//
// A stall excludes nothing if it cannot matter: if it is shorter than a fiftieth of the quantile,
// or if the shortest stalls together delay so few arrivals that the rank moves by at most a
// fiftieth of those above it. So p50 needs no exclusion where p99 does.
//
// If fewer than nine tenths of the arrivals would remain, the shortest of the other stalls are
// ignored if that suffices: as many as necessary, up to a tenth of the quantile long. LowestNs then
// bounds what they did to the quantile, as it does for stalls that were too short to be recorded.
// For LeastShare, stalls of up to a fifth are ignored.
func (l OpenLoad) WithoutStalls(q float64) StallFree {
	mustBeShare("quantile", q)
	r := StallFree{RawNs: quantileOf(slices.Concat(l.Arrivals, l.Disturbed), q), Share: 1,
		quantile: q}
	if QuantileNeeds(q, 0.95) > int64(len(l.Arrivals)) {
		r.Unknown = TooFewArrivals
		return r
	}
	r.Margins = l.margins(q)
	relevant, ignoredStalls := l.ignore(l.relevant(r.Margins, q), r.Margins)
	r.relevant = relevant
	r.Stalls, r.IgnoredStalls = len(relevant), len(ignoredStalls)
	r.Negligible = len(l.Stalls) - len(relevant) - len(ignoredStalls)
	with := func(factor float64) followed {
		m := r.Margins
		m.Factor = factor
		return follow(l.Arrivals, clusters(relevant, m))
	}
	remaining := with(1)
	r.Share = float64(len(remaining.ns)) / float64(len(l.Arrivals))
	times := remaining.distribution()
	var reached bool
	r.ValueNs, reached = times.quantile(q)
	short := unrecorded{times: times, q: q, idle: r.Margins.idle(), meanNs: r.Margins.WaitNs,
		longestNs: l.ShortestNs, valueNs: r.ValueNs}
	short.include(ignoredStalls, l.TimeNs)
	unseen := UnseenOf(l.Stalls, l.TimeNs).Most()
	r.LowestNs = short.lowest(unseen)
	r.LowerFrom = short.lowerFrom()
	r.HalfNs, _ = with(0.5).distribution().quantile(q)
	r.DoubleNs, _ = with(2).distribution().quantile(q)
	r.Strikes = findStrikes(l.Arrivals, relevant, r.Margins, r.ValueNs/2)
	// UnrecordedStalls is the last reason, because estimates from other trials can refute it.
	switch {
	case r.Share < LeastShare:
		r.Unknown = TooMuchExcluded
	case r.Strikes.P < dependentP:
		r.Unknown = StallsDepend
	case !reached || QuantileNeeds(q, 0.95) > remaining.until(r.ValueNs):
		r.Unknown = TooFewArrivals
	case float64(r.LowestNs) < (1-mostLower)*float64(r.ValueNs):
		r.Unknown = UnrecordedStalls
	}
	return r
}

// margins returns those of the second pass.
func (l OpenLoad) margins(q float64) Margins {
	m := Margins{BeforeNs: firstBeforeNs, AfterNs: firstAfterNs}
	for range 2 {
		pass := enough(l.Arrivals, Exclude(l.Stalls, m))
		m = Margins{BeforeNs: quantileOf(pass, q), Utilization: l.Utilization,
			WaitNs: meanResponse(pass)}
	}
	return m
}

// enough returns the arrivals that remain, or all where too few do for a first pass.
func enough(arrivals []Arrival, intervals []Interval) []Arrival {
	const least = 0.02
	remaining := outside(arrivals, intervals)
	if float64(len(remaining)) < least*float64(len(arrivals)) {
		return arrivals
	}
	return remaining
}

func meanResponse(arrivals []Arrival) float64 {
	sum := 0.0
	for _, a := range arrivals {
		sum += float64(a.ResponseNs)
	}
	return sum / float64(max(len(arrivals), 1))
}

// relevant returns the stalls that can move a quantile.
func (l OpenLoad) relevant(margins Margins, q float64) []Stall {
	length := func(s Stall) int64 { return s.EndNs - s.BeginNs }
	sorted := slices.Clone(l.Stalls)
	slices.SortStableFunc(sorted, func(a, b Stall) int { return cmp.Compare(length(a), length(b)) })
	budget := negligible * (1 - q) * float64(len(l.Arrivals))
	for i, s := range sorted {
		if float64(length(s)) <= negligible*float64(margins.BeforeNs) {
			continue
		}
		span := Exclude([]Stall{s}, margins)[0]
		budget -= float64(rank(l.Arrivals, span.ToNs) - rank(l.Arrivals, span.FromNs))
		if budget < 0 {
			return sorted[i:]
		}
	}
	return nil
}

// ignore takes the shortest of the relevant stalls, which are sorted by length, away until enough
// arrivals remain (ignorable). It takes none away if that is not enough.
func (l OpenLoad) ignore(relevant []Stall, margins Margins) (remaining, ignoredStalls []Stall) {
	share := func(n int) float64 {
		included := follow(l.Arrivals, clusters(relevant[n:], margins))
		return float64(len(included.ns)) / float64(len(l.Arrivals))
	}
	initial := share(0)
	for _, x := range ignorable {
		if initial >= x.share {
			break
		}
		limit, _ := slices.BinarySearchFunc(relevant, int64(x.length*float64(margins.BeforeNs)),
			func(s Stall, ns int64) int { return cmp.Compare(s.EndNs-s.BeginNs, ns+1) })
		if n := sort.Search(limit, func(n int) bool { return share(n) >= x.share }); n < limit ||
			share(limit) >= x.share {
			return relevant[n:], relevant[:n]
		}
	}
	return relevant, nil
}

// rank is the number of arrivals that were due before a moment.
func rank(arrivals []Arrival, ns int64) int {
	n, _ := slices.BinarySearchFunc(arrivals, ns, func(a Arrival, ns int64) int {
		return cmp.Compare(a.DueNs, ns)
	})
	return n
}

// quantileOf returns the response time of nearest rank; 0 without arrivals.
func quantileOf(arrivals []Arrival, q float64) int64 {
	if len(arrivals) == 0 {
		return 0
	}
	values := make([]int64, len(arrivals))
	for i, a := range arrivals {
		values[i] = a.ResponseNs
	}
	return smallest(values, max(int(math.Ceil(q*float64(len(values)))), 1)-1)
}

// smallest returns the value at an index as if the values were sorted, and reorders them (Hoare,
// "Algorithm 65: find", Communications of the ACM 4(7), 1961, pp. 321-322).
func smallest(values []int64, index int) int64 {
	low, high := 0, len(values)-1
	for low < high {
		pivot := max(min(values[low], values[(low+high)/2]),
			min(max(values[low], values[(low+high)/2]), values[high]))
		i, j := low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case index <= j:
			high = j
		case index >= i:
			low = i
		default:
			return values[index]
		}
	}
	return values[index]
}

// Strikes compare how often stalls begin while the service pauses with how much of the time it
// pauses.
type Strikes struct {
	Stalls   int     // that began when the backlog of those before was gone
	Inside   int     // of them while the service paused
	Expected float64 // Inside, if stalls and pauses are independent
	Pauses   int     // that Expected rests on
	// P is the probability of an Inside as far from Expected, or farther, if they are independent.
	P float64
}

// findStrikes looks for stalls that depend on the service, such as those of a hypervisor that takes
// the core from a machine that was busy for some time. The service pauses if a request has waited
// for longer than a limit. At the begin of a stall that is known from requests that were due
// before, and the stall has not changed it yet. By chance, stalls would begin in a pause as often
// as requests arrive in one, which is counted among the arrivals that remain (Wolff, "Poisson
// arrivals see time averages", Operations Research 30, 1982, pp. 223-231).
//
// Pauses and strikes in them are both counted as Poisson events. Given their sum, the strikes are
// binomial (Przyborowski & Wilenski, "Homogeneity of results in testing samples from Poisson
// series", Biometrika 31, 1940, pp. 313-323).
func findStrikes(arrivals []Arrival, stalls []Stall, margins Margins, limitNs int64) Strikes {
	intervals, pauses := Exclude(stalls, margins), pausesOf(arrivals, limitNs)
	s := Strikes{P: 1}
	until := int64(math.MinInt64)
	for _, span := range clusters(stalls, margins) {
		if span.FromNs > until {
			s.Stalls++
			if contains(pauses, span.FromNs) {
				s.Inside++
			}
		}
		until = span.ToNs
	}
	remaining := outside(arrivals, intervals)
	in, next := 0, 0
	for _, a := range remaining {
		for next < len(pauses) && a.DueNs >= pauses[next].ToNs {
			next++
		}
		if next < len(pauses) && a.DueNs >= pauses[next].FromNs {
			in++
		}
	}
	for _, p := range pauses {
		if !contains(intervals, p.FromNs) {
			s.Pauses++
		}
	}
	if len(remaining) == 0 || s.Stalls == 0 {
		return s
	}
	// Where no arrival found a pause, the next one might have.
	s.Expected = float64(s.Stalls) * float64(max(in, 1)) / float64(len(remaining))
	s.P = strikesP(s.Inside, s.Pauses, s.Expected)
	return s
}

// strikesP is twice the smaller tail of a binomial.
func strikesP(inside, pauses int, expected float64) float64 {
	pauses = max(pauses, 1)
	n := inside + pauses
	share := expected / (expected + float64(pauses))
	atLeast := func(k int) float64 { // the probability of k or more
		switch {
		case k <= 0:
			return 1
		case k > n:
			return 0
		}
		return mathext.RegIncBeta(float64(k), float64(n-k+1), share)
	}
	return min(1, 2*min(atLeast(inside), 1-atLeast(inside+1)))
}

// pausesOf returns when a request had waited for longer than a limit.
func pausesOf(arrivals []Arrival, limitNs int64) (all []Interval) {
	for _, a := range arrivals {
		if a.ResponseNs <= limitNs {
			continue
		}
		from, to := a.DueNs+limitNs, a.DueNs+a.ResponseNs
		if n := len(all); n > 0 && from <= all[n-1].ToNs {
			all[n-1].ToNs = max(all[n-1].ToNs, to)
			continue
		}
		all = append(all, Interval{from, to})
	}
	return all
}
