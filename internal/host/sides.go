package host

import (
	"fmt"
	"math"
	"slices"
)

// Sides are the processors of two services that are measured at once, each with a load of its own.
// Left has the lower numbers. No processor is on both sides.
type Sides struct{ Left, Right Layout }

// Cores are all of a layout, in order.
func (l Layout) Cores() []int { return union(l.Service, l.Load) }

// Whole is both sides together: where the services and where the loads may be.
func (s Sides) Whole() Layout {
	return Layout{
		Service: union(s.Left.Service, s.Right.Service),
		Load:    union(s.Left.Load, s.Right.Load),
		Shared:  s.Left.Shared,
	}
}

func union(a, b []int) []int {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// DivideSides gives each of two sides as many cores as its service may use processors (rounded up)
// and one for its load. Cores that are left over stay idle: a side with more of them than the other
// would be another machine. Neighbours by number go to one side, since those that share a cache
// usually have neighbouring numbers.
//
// With shared, the service and the load of a side have the same cores, and that many suffice; the
// two sides still share none.
func DivideSides(cores []int, cpus float64, shared bool) (Sides, error) {
	want := int(math.Ceil(cpus))
	apart := 2*want + 2
	switch {
	case want < 1:
		return Sides{}, fmt.Errorf("divide %d cores into two sides: a service of %g CPUs does "+
			"not fit", len(cores), cpus)
	case shared && len(cores) >= 2*want:
		return Sides{Left: sharing(cores[:want]), Right: sharing(cores[want : 2*want])}, nil
	case shared:
		return Sides{}, fmt.Errorf("divide %d cores into two sides: with %g CPUs a service, "+
			"shared with its load, a duet takes %d; measure one target at a time, without --duet",
			len(cores), cpus, 2*want)
	case len(cores) < apart:
		hint := "measure one target at a time, without --duet"
		if len(cores) >= 2*want {
			hint = "--duet=shared puts each service and its load on the same cores, which makes " +
				"every trial SUSPECT; or " + hint
		}
		return Sides{}, fmt.Errorf("divide %d cores into two sides: with %g CPUs a service, a "+
			"duet takes %d (two services of %d, two loads of 1); %s", len(cores), cpus, apart,
			want, hint)
	}
	return Sides{Left: side(cores[:want+1]), Right: side(cores[want+1 : apart])}, nil
}

// side has the load on its first core, as Divide has it on the lower ones.
func side(cores []int) Layout { return Layout{Load: cores[:1], Service: cores[1:]} }

// sharing has a load thread on each core of the service.
func sharing(cores []int) Layout { return Layout{Load: cores, Service: cores, Shared: true} }
