package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Processor is one that the kernel schedules on, as it has them: of an SMT pair both have one core.
type Processor struct{ ID, Core, Node int }

// Processors says of each which core and which NUMA node it is of. One of which the kernel does not
// say is a core of its own, on node 0.
func Processors(ids []int) (out []Processor) {
	for _, id := range ids {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", id)
		p := Processor{ID: id, Core: id}
		// "0,4" or "0-1": the first of those that share a core stands for it.
		siblings := read(dir + "/topology/thread_siblings_list")
		if _, err := fmt.Sscanf(siblings, "%d", &p.Core); err != nil {
			p.Core = id
		}
		if nodes, _ := filepath.Glob(dir + "/node*"); len(nodes) > 0 {
			node := strings.TrimPrefix(filepath.Base(nodes[0]), "node")
			if _, err := fmt.Sscanf(node, "%d", &p.Node); err != nil {
				p.Node = 0
			}
		}
		out = append(out, p)
	}
	return out
}

// leave is what the load keeps at least, in cores, before anything else has one of its own: more
// than one thread, and as many as the service may use.
const leave = 2

// Apart gives the home of telemetry a core of its own where there are enough; see spare.
//
// It does so whether there is a home or not: a run with telemetry is measured as one without.
func (l Layout) Apart(all []Processor) Layout {
	l.Home = l.spare(all)
	return l.without(l.Home)
}

// Back gives backing processes, such as a database, a core of their own where there are enough; see
// spare. The home has its own before.
func (l Layout) Back(all []Processor) Layout {
	l.Backing = l.spare(all)
	return l.without(l.Backing)
}

// without takes processors from the load.
func (l Layout) without(ids []int) Layout {
	l.Load = slices.DeleteFunc(slices.Clone(l.Load), func(id int) bool {
		return slices.Contains(ids, id)
	})
	return l
}

// spare is a core, whole, with all processors of an SMT group, that neither service nor load has to
// share: one that nobody has, as beside a duet, else one of the load's, which keeps two and as many
// as the service has. None where there are not enough. It is on another NUMA node than the service
// where the load has cores on one, for memory's sake, and the last of them, since the load's first
// threads have the first.
func (l Layout) spare(all []Processor) (out []int) {
	cores := map[int][]Processor{}
	var names []int
	serves := map[int]bool{} // nodes
	for _, p := range all {
		if !slices.Contains(names, p.Core) {
			names = append(names, p.Core)
		}
		cores[p.Core] = append(cores[p.Core], p)
		serves[p.Node] = serves[p.Node] || slices.Contains(l.Service, p.ID)
	}
	whole := func(in func(id int) bool) (out []int) {
		for _, name := range names {
			if !slices.ContainsFunc(cores[name], func(p Processor) bool { return !in(p.ID) }) {
				out = append(out, name)
			}
		}
		return out
	}
	taken := slices.Concat(l.Cores(), l.Home, l.Backing)
	free := whole(func(id int) bool { return !slices.Contains(taken, id) })
	if len(free) == 0 && !l.Shared {
		free = whole(func(id int) bool {
			return slices.Contains(l.Load, id) && !slices.Contains(l.Service, id)
		})
		others := slices.Concat(l.Load, l.Home, l.Backing)
		served := whole(func(id int) bool { return !slices.Contains(others, id) })
		if len(free) <= max(leave, len(served)) {
			return nil
		}
	}
	if len(free) == 0 {
		return nil
	}
	chosen := free[len(free)-1]
	for _, name := range free {
		if !serves[cores[name][0].Node] {
			chosen = name
		}
	}
	for _, p := range cores[chosen] {
		out = append(out, p.ID)
	}
	return out
}
