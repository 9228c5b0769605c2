package profile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/units"
)

// Row is a function in a table.
type Row struct {
	Name string `json:"name"`
	Flat int64  `json:"flat"` // in the function itself
	Cum  int64  `json:"cum"`  // in it and all that it called; recursion counts once per stack
	// Shares of the total, 0 to 1.
	FlatShare float64 `json:"flatShare"`
	CumShare  float64 `json:"cumShare"`
}

// Top returns the n functions with the largest flat values; n below 1: all functions.
func Top(p *pprof.Profile, n int) []Row {
	rows := map[string]*Row{}
	index := Main(p)
	var total int64
	for _, s := range p.Sample {
		v := s.Value[index]
		total += v
		names := frames(s)
		visited := map[string]bool{}
		for i, name := range names {
			row := rows[name]
			if row == nil {
				row = &Row{Name: name}
				rows[name] = row
			}
			if i == len(names)-1 {
				row.Flat += v
			}
			if !visited[name] {
				row.Cum += v
			}
			visited[name] = true
		}
	}
	var out []Row
	for _, row := range rows {
		row.FlatShare, row.CumShare = share(row.Flat, total), share(row.Cum, total)
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Flat, a.Flat), cmp.Compare(b.Cum, a.Cum),
			cmp.Compare(a.Name, b.Name))
	})
	if n > 0 && len(out) > n {
		out = out[:n]
	}
	return out
}

func share(part, total int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(part) / float64(total)
}

// Change is the change of a function from a profile a to a profile b, in shares of each.
type Change struct {
	Name  string  `json:"name"`
	FlatA float64 `json:"flatA"`
	FlatB float64 `json:"flatB"`
	CumA  float64 `json:"cumA"`
	CumB  float64 `json:"cumB"`
	// Error is the standard error of FlatB - FlatA from the numbers of samples, if samples are
	// independent: sqrt(a(1-a)/nA + b(1-b)/nB); -1: the numbers of samples are unknown.
	Error float64 `json:"error"`
}

// Flat returns the change in the function itself, positive if it grew. 0.01 is one percentage
// point.
func (c Change) Flat() float64 { return c.FlatB - c.FlatA }

// Cum returns the change in the function and all that it called.
func (c Change) Cum() float64 { return c.CumB - c.CumA }

// Diff compares two profiles of the same kind by function, in shares, so that runs of different
// length are comparable. The largest change is first.
func Diff(a, b *pprof.Profile) ([]Change, error) {
	if err := alike(a, b); err != nil {
		return nil, err
	}
	changes := map[string]*Change{}
	valueAt := func(name string) *Change {
		if changes[name] == nil {
			changes[name] = &Change{Name: name}
		}
		return changes[name]
	}
	for _, row := range Top(a, 0) {
		valueAt(row.Name).FlatA, valueAt(row.Name).CumA = row.FlatShare, row.CumShare
	}
	for _, row := range Top(b, 0) {
		valueAt(row.Name).FlatB, valueAt(row.Name).CumB = row.FlatShare, row.CumShare
	}
	nA, nB := float64(Samples(a)), float64(Samples(b))
	var out []Change
	for _, c := range changes {
		c.Error = -1
		if nA > 0 && nB > 0 {
			c.Error = math.Sqrt(c.FlatA*(1-c.FlatA)/nA + c.FlatB*(1-c.FlatB)/nB)
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Flat()), math.Abs(a.Flat())),
			cmp.Compare(math.Abs(b.Cum()), math.Abs(a.Cum())), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func alike(a, b *pprof.Profile) error {
	if len(a.SampleType) == 0 || len(b.SampleType) == 0 {
		return fmt.Errorf("compare profiles: at least one profile has no values")
	}
	ta, tb := a.SampleType[Main(a)], b.SampleType[Main(b)]
	if ta.Unit != tb.Unit {
		return fmt.Errorf("compare profiles: one profile measures %s in %s, but the other "+
			"measures %s in %s",
			ta.Type, ta.Unit, tb.Type, tb.Unit)
	}
	return nil
}

// Small is the frame that combines frames that are too small to draw.
const Small = "(small)"

// smallest is the share of a profile below which frames are not drawn: a pixel of a wide screen.
const smallest = 0.001

// wide is the value of the root in a tree of changes, whose values are shares.
const wide = 1e9

// Frame is a function in a flame graph, below its callers. A tree's values are in the unit of
// Total, and in FlameDiff's tree in billionths of the total.
type Frame struct {
	Name     string   `json:"name"`            // short
	Full     string   `json:"full,omitempty"`  // full name, if different
	Value    int64    `json:"value"`           // in it and all frames below it
	Self     int64    `json:"self,omitempty"`  // in it alone
	Delta    float64  `json:"delta,omitempty"` // change of its share, positive if it grew
	Children []*Frame `json:"children,omitempty"`
}

// node is a frame while the tree is built.
type node struct {
	name      string
	cum, self [2]float64 // of a first and a second profile
	children  map[string]*node
}

func (n *node) child(name string) *node {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	if n.children[name] == nil {
		n.children[name] = &node{name: name}
	}
	return n.children[name]
}

// grow adds the stacks of profile number 0 or 1, each value times the factor.
func (n *node) grow(p *pprof.Profile, factor float64, number int) {
	position := Main(p)
	for _, s := range p.Sample {
		v := float64(s.Value[position]) * factor
		current := n
		current.cum[number] += v
		for _, name := range frames(s) {
			current = current.child(name)
			current.cum[number] += v
		}
		current.self[number] += v
	}
}

// Flame returns a profile as a tree with a root "all". Frames with less than a thousandth of the
// total are merged into one sibling, "(small)".
func Flame(p *pprof.Profile) *Frame {
	root := &node{name: "all"}
	root.grow(p, 1, 0)
	return root.frame(root.cum[0]*smallest, func(n *node) (value, self, delta float64) {
		return n.cum[0], n.self[0], 0
	})
}

// FlameDiff returns two profiles of one kind as one tree. A frame's value is the mean of its shares
// in both, so that frames that vanished stay visible. Delta is the change.
func FlameDiff(a, b *pprof.Profile) (*Frame, error) {
	if err := alike(a, b); err != nil {
		return nil, err
	}
	root := &node{name: "all"}
	for index, p := range []*pprof.Profile{a, b} {
		if total, _ := Total(p); total > 0 {
			root.grow(p, wide/float64(total), index)
		}
	}
	return root.frame(wide*smallest, func(n *node) (value, self, delta float64) {
		return (n.cum[0] + n.cum[1]) / 2, (n.self[0] + n.self[1]) / 2,
			(n.cum[1] - n.cum[0]) / wide
	}), nil
}

// frame returns the node in its drawn form. Children are sorted by name, so that a function has the
// same place in other graphs; merged small ones are last.
func (n *node) frame(least float64, see func(*node) (value, self, delta float64)) *Frame {
	value, self, delta := see(n)
	f := &Frame{Name: Short(n.name), Value: int64(value), Self: int64(self), Delta: delta}
	if f.Name != n.name {
		f.Full = n.name
	}
	var remaining *Frame
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		c := n.children[name]
		if v, _, d := see(c); v < least {
			if remaining == nil {
				remaining = &Frame{Name: Small}
			}
			remaining.Value += int64(v)
			remaining.Self += int64(v)
			remaining.Delta += d
			continue
		}
		f.Children = append(f.Children, c.frame(least, see))
	}
	if remaining != nil && remaining.Value > 0 {
		f.Children = append(f.Children, remaining)
	}
	return f
}

// Amount formats a value with its unit: "1.25 s", "3.4 MiB".
func Amount(v float64, subject string) string {
	switch subject {
	case Nanoseconds:
		return units.Duration(v)
	case Bytes:
		return units.Bytes(v)
	}
	return fmt.Sprintf("%.4g", v)
}
