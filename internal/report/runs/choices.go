package runs

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Choices are the values by which runs can be filtered, in order.
type Choices struct {
	Suites   []string  `json:"suites"`
	Targets  []string  `json:"targets"`
	Labels   []string  `json:"labels"` // NAME=VALUE
	Machines []Machine `json:"machines"`
}

// maxChoices bounds each list: the values of the newest runs are in it.
const maxChoices = 1000

// Choices returns the values of all runs. If hundreds of runs have to be read, it returns those of
// the runs that are known so far.
func (s *Shelf) Choices(ctx context.Context) (Choices, error) {
	list, err := s.listed(ctx)
	if err != nil {
		return Choices{}, err
	}
	suites, targets, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	machines := map[string]Machine{}
	add := func(to map[string]bool, word string) {
		if word != "" && len(to) < maxChoices {
			to[word] = true
		}
	}
	for _, run := range list.items {
		if run.problem != "" {
			continue
		}
		e := run.entry
		add(suites, e.Suite)
		for _, target := range e.Targets {
			add(targets, target)
		}
		for name, value := range e.Labels {
			add(labels, name+"="+value)
		}
		if _, ok := machines[e.Machine.Key]; !ok && len(machines) < maxChoices &&
			e.Machine.Key != "" {
			machines[e.Machine.Key] = e.Machine
		}
	}
	order := func(words map[string]bool) []string {
		out := slices.AppendSeq([]string{}, maps.Keys(words)) // [] in JSON, never null
		slices.Sort(out)
		return out
	}
	out := Choices{Suites: order(suites), Targets: order(targets), Labels: order(labels),
		Machines: slices.AppendSeq([]Machine{}, maps.Values(machines))}
	slices.SortFunc(out.Machines, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(a.CPUModel, b.CPUModel), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}
