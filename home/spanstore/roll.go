package spanstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/traces"
)

// Counts is what became of spans or of log records. Once a trial has ended, Received = Kept +
// Dropped.
type Counts struct {
	Received int64
	Kept     int64 // as records, or as spans of kept traces
	Dropped  int64 // the others
}

func (c *Counts) add(d Counts) {
	c.Received += d.Received
	c.Kept += d.Kept
	c.Dropped += d.Dropped
}

// Under is a trial under way as every store knows it, with what is kept of it; what a store has
// beside it lies around it.
type Under[T Seated] struct {
	telemetry.Trial
	Windows Windows
	Places  func() Group[T] // those of a window, empty
	Counts  Counts
	groups  map[string]Group[T]
}

func (u *Under[T]) under() *Under[T] { return u }

// Group is that of a window.
func (u *Under[T]) Group(window string) Group[T] {
	g, ok := u.groups[window]
	if !ok {
		if u.groups == nil {
			u.groups = map[string]Group[T]{}
		}
		g = u.Places()
		u.groups[window] = g
	}
	return g
}

// Items are all that have places, once for each.
func (u *Under[T]) Items() (out []T) {
	for _, g := range u.groups {
		for _, p := range g {
			out = append(out, p.items...)
		}
	}
	return out
}

// Roll are the trials under way, and what became of all that came. Begin, Mark, Counts and IDs lock
// it; whoever calls anything else does so before. U is a pointer to a struct that embeds Under; its
// zero value stands for no trial.
type Roll[U interface {
	comparable
	under() *Under[T]
}, T Seated] struct {
	sync.Mutex
	Trials []U        // in the order of their beginning
	Bytes  int64      // of what has places in any of them
	Most   int64      // bytes that may be
	Lost   func(U, T) // is told what has lost its last place
	ended  Counts     // of those that have ended, and of what came for none
}

// Keep gives an item of a trial the places of its group that it deserves, and makes room where
// there is none.
func (r *Roll[U, T]) Keep(t U, g Group[T], item T) {
	r.Bytes += item.seat().Bytes
	for _, out := range g.Offer(item) {
		r.lose(t, out)
	}
	for r.Bytes > r.Most && r.evict() {
	}
}

func (r *Roll[U, T]) lose(t U, item T) {
	r.Bytes -= item.seat().Bytes
	r.Lost(t, item)
}

// evict takes one item out of a place, of the least valuable place that has any, where there are
// most of them, and never lets the place that became free be filled again: there is no room for it.
func (r *Roll[U, T]) evict() bool {
	var from U
	var most Group[T]
	place := -1
	for _, t := range r.Trials {
		groups := t.under().groups
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			g := groups[name]
			for i := range g {
				n := len(g[i].items)
				if n > 0 && (i > place || i == place && n > len(most[i].items)) {
					from, most, place = t, g, i
				}
			}
		}
	}
	if place < 0 {
		return false
	}
	out := most.pop(place)
	most[place].Limit = len(most[place].items)
	if !most.holds(out) {
		r.lose(from, out)
	}
	return true
}

// Find is the trial of that id.
func (r *Roll[U, T]) Find(id string) (t U) {
	if i := slices.IndexFunc(r.Trials, func(t U) bool { return t.under().ID == id }); i >= 0 {
		return r.Trials[i]
	}
	return t
}

// Begin adds a trial.
func (r *Roll[U, T]) Begin(t U) error {
	r.Lock()
	defer r.Unlock()
	var none U
	if id := t.under().ID; r.Find(id) != none {
		return fmt.Errorf("begin trial %s: the trial has already begun", id)
	}
	r.Trials = append(r.Trials, t)
	return nil
}

// Mark opens or closes a window of a trial.
func (r *Roll[U, T]) Mark(m telemetry.Mark) error {
	r.Lock()
	defer r.Unlock()
	var none U
	t := r.Find(m.Trial)
	if t == none {
		return fmt.Errorf("mark %s %s: trial %q is not running", m.Kind, m.Name, m.Trial)
	}
	return t.under().Windows.Mark(m)
}

// Origin is the service that a resource describes, and its trial: the one that its attribute
// traces.TrialAttribute names, else the one that began last.
func (r *Roll[U, T]) Origin(resource pcommon.Map) (service string, t U) {
	service = ServiceOf(resource)
	if v, ok := resource.Get(traces.TrialAttribute); ok {
		return service, r.Find(v.AsString())
	}
	if len(r.Trials) == 0 {
		return service, t
	}
	return service, r.Trials[len(r.Trials)-1]
}

// Stray counts an item that belongs to no trial.
func (r *Roll[U, T]) Stray() { r.ended.add(Counts{Received: 1, Dropped: 1}) }

// End takes a trial out.
func (r *Roll[U, T]) End(t U) {
	r.ended.add(t.under().Counts)
	r.Trials = slices.DeleteFunc(r.Trials, func(x U) bool { return x == t })
}

// Counts of all trials so far. Kept is of those that have ended.
func (r *Roll[U, T]) Counts() Counts {
	r.Lock()
	defer r.Unlock()
	out := r.ended
	for _, t := range r.Trials {
		out.add(t.under().Counts)
	}
	return out
}

// IDs are those of the trials under way.
func (r *Roll[U, T]) IDs() (out []string) {
	r.Lock()
	defer r.Unlock()
	for _, t := range r.Trials {
		out = append(out, t.under().ID)
	}
	return out
}

// Seat is embedded by what may be kept.
type Seat struct {
	Bytes int64 // about what it takes in memory
	In    uint8 // the places of its group that hold it, a bit each; the others are its owner's
}

func (s *Seat) seat() *Seat { return s }

// Seated is a pointer to a struct that embeds a Seat.
type Seated interface {
	comparable
	seat() *Seat
	// Eligible says whether it may have a place at all.
	Eligible(place int) bool
}

// Place is a bounded set of the best.
type Place[T Seated] struct {
	Limit int
	Order func(a, b T) int // the ones to keep first
	items []T              // best first
}

// wants says whether an item would be taken; it costs one comparison in the usual case.
func (p *Place[T]) wants(c T) bool {
	return p.Limit > len(p.items) || p.Limit > 0 && p.Order(c, p.items[len(p.items)-1]) < 0
}

// Group is what is kept of one window: each place holds the best of all that were ever offered, so
// the outcome does not depend on the order in which they came. Later places are worth less.
type Group[T Seated] []Place[T]

// Wants says whether an item would find any place.
func (g Group[T]) Wants(c T) bool {
	for i := range g {
		if c.Eligible(i) && g[i].wants(c) {
			return true
		}
	}
	return false
}

// Offer gives an item every place that it deserves and returns those that have none left.
func (g Group[T]) Offer(c T) (lost []T) {
	for i := range g {
		p := &g[i]
		if !c.Eligible(i) || !p.wants(c) {
			continue
		}
		if len(p.items) >= p.Limit {
			if out := g.pop(i); !g.holds(out) {
				lost = append(lost, out)
			}
		}
		at, _ := slices.BinarySearchFunc(p.items, c, p.Order)
		p.items = slices.Insert(p.items, at, c)
		c.seat().In |= 1 << i
	}
	if !g.holds(c) {
		lost = append(lost, c)
	}
	return lost
}

// Withdraw takes an item out of all places, so that it can be offered anew.
func (g Group[T]) Withdraw(c T) {
	for i := range g {
		if c.seat().In&(1<<i) != 0 {
			g[i].items = slices.DeleteFunc(g[i].items, func(x T) bool { return x == c })
			c.seat().In &^= 1 << i
		}
	}
}

// pop takes the worst out of a place.
func (g Group[T]) pop(place int) T {
	p := &g[place]
	last := len(p.items) - 1
	c := p.items[last]
	p.items = slices.Delete(p.items, last, last+1)
	c.seat().In &^= 1 << place
	return c
}

// holds says whether an item has any place.
func (g Group[T]) holds(c T) bool { return c.seat().In&(1<<len(g)-1) != 0 }
