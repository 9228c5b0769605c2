package traces

import (
	"cmp"
	"slices"
)

// Settle finds the root of the spans and sets the fields that depend on it.
func (t *Trace) Settle() {
	index, roots := rootOf(t.Spans)
	top := t.Spans[index]
	t.Roots, t.Service, t.Name = roots, top.Service, top.Name
	t.StartNs, t.DurationNs = top.StartNs, top.DurationNs
}

// Sort sorts the spans by start.
func (t *Trace) Sort() {
	slices.SortFunc(t.Spans, func(a, b Span) int {
		return cmp.Or(earlier(&a, &b), cmp.Compare(a.Parent, b.Parent))
	})
}

func rootOf(list []Span) (index, roots int) {
	return Root(len(list), func(i int) (id, parent string) { return list[i].ID, list[i].Parent },
		func(i, j int) bool { return earlier(&list[i], &list[j]) < 0 })
}

// Root returns the index of the root among n spans: the earliest span without a parent in the
// trace, or the earliest of all if there is none, since all are each other's parents. It also
// returns the number of spans without a parent.
func Root[ID comparable](n int, ids func(i int) (id, parent ID), before func(i, j int) bool) (pos,
	roots int) {
	var none ID
	here := members(n, ids)
	pos = -1
	early := 0
	for i := range n {
		if before(i, early) {
			early = i
		}
		if id, parent := ids(i); parent != none && parent != id && here(parent) {
			continue
		}
		roots++
		if pos < 0 || before(i, pos) {
			pos = i
		}
	}
	if pos < 0 {
		return early, 0
	}
	return pos, roots
}

// members returns a function that reports whether a span is in the trace. In most traces a linear
// search is faster than building a map.
func members[ID comparable](n int, ids func(i int) (id, parent ID)) func(ID) bool {
	const short = 16
	if n <= short {
		return func(want ID) bool {
			for i := range n {
				if id, _ := ids(i); id == want {
					return true
				}
			}
			return false
		}
	}
	here := make(map[ID]bool, n)
	for i := range n {
		id, _ := ids(i)
		here[id] = true
	}
	return func(want ID) bool { return here[want] }
}

// earlier orders spans by start, then the longer first, then by id.
func earlier(a, b *Span) int {
	return cmp.Or(cmp.Compare(a.StartNs, b.StartNs), cmp.Compare(b.DurationNs, a.DurationNs),
		cmp.Compare(a.ID, b.ID))
}

// Node is a span with its children, by start.
type Node struct {
	Span     *Span
	Children []*Node
	Depth    int
	SelfNs   int64 // duration without the time of its children
	PathNs   int64 // part of its self time on the critical path
	Steps    []Step
}

// Step is an interval of the critical path in one span. Unix times in ns.
type Step struct{ FromNs, ToNs int64 }

// Tree returns the root of a trace, followed by the spans whose parents are missing, by start. Each
// span occurs once, even in malformed traces: of spans that name each other as parents, the
// earliest counts as a root; of several parents with one id, the one of the child's service counts,
// or else the first.
func Tree(t *Trace) []*Node {
	nodes := make([]*Node, len(t.Spans))
	byID := make(map[string][]*Node, len(t.Spans))
	for i := range t.Spans {
		nodes[i] = &Node{Span: &t.Spans[i]}
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int { return earlier(a.Span, b.Span) })
	for _, n := range nodes {
		byID[n.Span.ID] = append(byID[n.Span.ID], n)
	}
	parents := make(map[*Node]*Node, len(nodes))
	for _, n := range nodes {
		parents[n] = parentOf(n, byID[n.Span.Parent])
	}
	breakCycles(nodes, parents)
	var roots []*Node
	for _, n := range nodes {
		if p := parents[n]; p != nil {
			p.Children = append(p.Children, n)
		} else {
			roots = append(roots, n)
		}
	}
	index, _ := rootOf(t.Spans)
	for i, n := range roots { // the root of the trace first
		if n.Span == &t.Spans[index] {
			copy(roots[1:i+1], roots[:i])
			roots[0] = n
			break
		}
	}
	Walk(roots, func(n *Node) {
		for _, c := range n.Children {
			c.Depth = n.Depth + 1
		}
		n.SelfNs = selfTime(n)
	})
	for _, r := range roots {
		r.criticalPath()
	}
	return roots
}

func parentOf(n *Node, named []*Node) *Node {
	var first *Node
	for _, p := range named {
		if p == n || p.Span.ID == n.Span.ID {
			continue
		}
		if p.Span.Service == n.Span.Service {
			return p
		}
		if first == nil {
			first = p
		}
	}
	return first
}

// breakCycles makes the earliest span of every cycle of parents a root. nodes are sorted by start.
func breakCycles(nodes []*Node, parents map[*Node]*Node) {
	const walking, done = 1, 2
	state := make(map[*Node]int, len(nodes))
	for _, n := range nodes {
		var way []*Node
		node := n
		for ; node != nil && state[node] == 0; node = parents[node] {
			state[node] = walking
			way = append(way, node)
		}
		if node != nil && state[node] == walking { // a cycle that contains node
			first := node
			for c := parents[node]; c != node; c = parents[c] {
				if earlier(c.Span, first.Span) < 0 {
					first = c
				}
			}
			parents[first] = nil
		}
		for _, passed := range way {
			state[passed] = done
		}
	}
}

// Walk visits all nodes, each before its children. It does not recurse, because a chain may be as
// long as a trace.
func Walk(roots []*Node, visit func(*Node)) {
	stack := slices.Clone(roots)
	slices.Reverse(stack)
	for len(stack) > 0 {
		node := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		visit(node)
		for _, c := range slices.Backward(node.Children) {
			stack = append(stack, c)
		}
	}
}

// selfTime returns the duration minus the union of the children's intervals inside it.
func selfTime(n *Node) int64 {
	self, covered := n.Span.DurationNs, n.Span.StartNs
	for _, c := range n.Children { // by start
		from := max(c.Span.StartNs, covered)
		to := min(c.Span.EndNs(), n.Span.EndNs())
		if to > from {
			self -= to - from
			covered = to
		}
	}
	return self
}

// criticalPath finds the intervals that determine the end of the root. Going back from its end, the
// time belongs to the child that ended last, then to the child that ended last before that one
// began, and so on; the rest is the span's own. It skips children that end after the point reached.
// The intervals are disjoint and fill the root's duration exactly. The method is that of CRISP
// (Zhang et al., USENIX ATC 2022), with children cut to their parents' intervals because clocks may
// disagree.
func (n *Node) criticalPath() {
	type part struct {
		n        *Node
		from, to int64
	}
	stack := []part{{n, n.Span.StartNs, n.Span.EndNs()}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at := p.to
		for _, c := range byEnd(p.n.Children, p.from, p.to) {
			from, to := max(c.Span.StartNs, p.from), min(c.Span.EndNs(), p.to)
			if to > at || from >= to {
				continue
			}
			p.n.own(to, at)
			stack = append(stack, part{c, from, to})
			at = from
		}
		p.n.own(p.from, at)
		slices.Reverse(p.n.Steps)
	}
}

// byEnd returns children by their end within the parent's interval, the last first, then the longer
// first.
func byEnd(children []*Node, from, to int64) []*Node {
	out := slices.Clone(children)
	slices.SortStableFunc(out, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(min(b.Span.EndNs(), to), min(a.Span.EndNs(), to)),
			cmp.Compare(max(a.Span.StartNs, from), max(b.Span.StartNs, from)))
	})
	return out
}

func (n *Node) own(from, to int64) {
	if to > from {
		n.PathNs += to - from
		n.Steps = append(n.Steps, Step{from, to})
	}
}

// Share is the part of a service in a trace: the sums over its spans.
type Share struct {
	Service string
	Spans   int
	SelfNs  int64
	PathNs  int64 // on the critical path of the root
}

// Shares returns the shares of all services, the largest on the critical path first.
func Shares(roots []*Node) []Share {
	byName := map[string]*Share{}
	var root *Node
	Walk(roots, func(n *Node) {
		if n.Depth == 0 {
			root = n
		}
		s := byName[n.Span.Service]
		if s == nil {
			s = &Share{Service: n.Span.Service}
			byName[n.Span.Service] = s
		}
		s.Spans++
		s.SelfNs += n.SelfNs
		if root == roots[0] {
			s.PathNs += n.PathNs
		}
	})
	var out []Share
	for _, s := range byName {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.PathNs, a.PathNs), cmp.Compare(b.SelfNs, a.SelfNs),
			cmp.Compare(a.Service, b.Service))
	})
	return out
}
