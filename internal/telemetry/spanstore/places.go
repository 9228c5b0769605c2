package spanstore

import "slices"

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
