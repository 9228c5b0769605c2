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

// Counts counts what became of spans or log records. After the end of a trial, Received = Kept +
// Dropped.
type Counts struct {
	Received int64
	Kept     int64 // as records, or as spans of kept traces
	Dropped  int64 // all others
}

func (c *Counts) add(d Counts) {
	c.Received += d.Received
	c.Kept += d.Kept
	c.Dropped += d.Dropped
}

// Under is the part of a trial under way that is common to all stores; a store embeds it.
type Under[T Seated] struct {
	telemetry.Trial
	Windows Windows
	Places  func() Group[T] // returns the empty places of a window
	Counts  Counts
	groups  map[string]Group[T]
}

func (u *Under[T]) under() *Under[T] { return u }

// Group returns the group of a window.
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

// Items returns all items that have places, without duplicates.
func (u *Under[T]) Items() (out []T) {
	for _, g := range u.groups {
		for _, p := range g {
			out = append(out, p.items...)
		}
	}
	return out
}

// Roll holds the trials under way and the counts of everything received. Begin, Mark, Counts and
// IDs lock it; callers of other methods must hold the lock. U is a pointer to a struct that embeds
// Under; its zero value means no trial.
type Roll[U interface {
	comparable
	under() *Under[T]
}, T Seated] struct {
	sync.Mutex
	Trials []U        // in order of their begin
	Bytes  int64      // of all items with places
	Most   int64      // limit of Bytes
	Lost   func(U, T) // is called with an item that has lost its last place
	ended  Counts     // of ended trials, and of items without a trial
}

// Keep gives an item its places in a group, and evicts items above the limit.
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

// evict removes one item from the least valuable place with items, in the group with the most of
// them, and lowers the limit of that place, because there is no memory to fill it again.
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

// Find returns the trial with an id.
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

// Origin returns the service of a resource, and its trial: the one in its attribute
// traces.TrialAttribute, or else the latest.
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

// End removes a trial.
func (r *Roll[U, T]) End(t U) {
	r.ended.add(t.under().Counts)
	r.Trials = slices.DeleteFunc(r.Trials, func(x U) bool { return x == t })
}

// Counts returns the counts of all trials so far. Kept includes only ended trials.
func (r *Roll[U, T]) Counts() Counts {
	r.Lock()
	defer r.Unlock()
	out := r.ended
	for _, t := range r.Trials {
		out.add(t.under().Counts)
	}
	return out
}

// IDs returns the ids of the trials under way.
func (r *Roll[U, T]) IDs() (out []string) {
	r.Lock()
	defer r.Unlock()
	for _, t := range r.Trials {
		out = append(out, t.under().ID)
	}
	return out
}

// Seat is embedded by items of a Group.
type Seat struct {
	Bytes int64 // approximate memory
	In    uint8 // a bit for each place that holds it; the owner may use the others
}

func (s *Seat) seat() *Seat { return s }

// Seated is a pointer to a struct that embeds a Seat.
type Seated interface {
	comparable
	seat() *Seat
	// Eligible reports whether the item may have a place.
	Eligible(place int) bool
}

// Place is a bounded set of the best items.
type Place[T Seated] struct {
	Limit int
	Order func(a, b T) int // the ones to keep first
	items []T              // best first
}

// wants reports whether the place would accept an item. It usually takes one comparison.
func (p *Place[T]) wants(c T) bool {
	return p.Limit > len(p.items) || p.Limit > 0 && p.Order(c, p.items[len(p.items)-1]) < 0
}

// Group holds the kept items of one window: each place holds the best of all items offered, so the
// result does not depend on their order. Later places are less valuable.
type Group[T Seated] []Place[T]

// Wants reports whether any place would accept an item.
func (g Group[T]) Wants(c T) bool {
	for i := range g {
		if c.Eligible(i) && g[i].wants(c) {
			return true
		}
	}
	return false
}

// Offer puts an item into all places that accept it, and returns the items that lost their last
// place.
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

// Withdraw removes an item from all places, so that it can be offered again.
func (g Group[T]) Withdraw(c T) {
	for i := range g {
		if c.seat().In&(1<<i) != 0 {
			g[i].items = slices.DeleteFunc(g[i].items, func(x T) bool { return x == c })
			c.seat().In &^= 1 << i
		}
	}
}

// pop removes the worst item of a place.
func (g Group[T]) pop(place int) T {
	p := &g[place]
	last := len(p.items) - 1
	c := p.items[last]
	p.items = slices.Delete(p.items, last, last+1)
	c.seat().In &^= 1 << place
	return c
}

// holds reports whether an item has any place.
func (g Group[T]) holds(c T) bool { return c.seat().In&(1<<len(g)-1) != 0 }
