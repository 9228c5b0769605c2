//go:build linux && !portable

package stallfree

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/observe/host"
	"prony.example/load"
)

// Nearby watches this machine while loads are offered to one service of it. A nil one watches
// nothing.
type Nearby struct {
	stalls *Watcher
	pids   func() []int
	cores  int    // of the service
	model  string // of the loads whose stalls are recorded
}

// WatchNearby watches loads of a model: the cores of the processes that listen at a port of this
// machine, tcp or udp, and those of the load's threads; of no cores, all that this process may use.
// It returns nil if no process is known.
func WatchNearby(model, network string, port int, cores []int) *Nearby {
	listening := host.Listening(network, netip.AddrPortFrom(netip.Addr{}, uint16(port)))
	if len(listening) == 0 { // on another machine, or of another user
		return nil
	}
	service := affinity(listening...)
	fixed := slices.Clone(cores) // a thread of the load is pinned to each
	if len(service) == 1 {
		fixed = append(fixed, service...)
	}
	if len(cores) == 0 {
		cores = affinity(0)
	}
	w := &Nearby{cores: max(len(service), 1), model: model}
	w.pids = func() []int { return host.Family(listening) }
	w.stalls = New(Setup{Open: OpenReal, Period: PeriodOf(model), Service: service,
		Load: cores, PIDs: w.pids, Free: without(slices.Concat(service, cores), fixed)})
	return w
}

// without are the numbers of a list that another one has not.
func without(list, removed []int) []int {
	return slices.DeleteFunc(list, func(n int) bool { return slices.Contains(removed, n) })
}

// Close ends the watch.
func (w *Nearby) Close() {
	if w != nil {
		w.stalls.Close()
	}
}

// Offer offers a load. If its stalls are recorded, the result also has these, and without them the
// throughput of a closed load, or percentiles of an open one: the usual ones and some more.
func (w *Nearby) Offer(ctx context.Context, s load.Spec, quantiles []float64,
	offer func(context.Context, load.Spec) (*load.Result, error)) (*load.Result, error) {
	if w == nil || s.Model != w.model {
		return offer(ctx, s)
	}
	log := w.stalls.Log()
	if !w.stalls.Works() {
		res, err := offer(ctx, s)
		if err == nil {
			log.Keep(Window{Load: &res.Load})
		}
		return res, err
	}
	s.Sample = SampleOf(&s)
	used := w.watchUse(&s)
	log.Begin()
	res, err := offer(ctx, s)
	log.End()
	if err != nil {
		return nil, err
	}
	share := float64(max(*used, 0)) / float64(max(res.WindowNs, 1)) / float64(w.cores)
	log.Keep(Window{Load: &res.Load, Sample: res.Sample, Room: s.Sample, FromNs: res.FromNs,
		Utilization: min(share, 1), Cores: w.cores}, quantiles...)
	return res, nil
}

// watchUse has a load read the processor time of the service in its window, in ns.
func (w *Nearby) watchUse(s *load.Spec) *int64 {
	cpu := cpuclock.New(w.pids)
	used := new(int64)
	s.Observer = load.Observers{s.Observer, load.WindowFunc(func(open bool) {
		if open {
			cpu.Refresh()
			*used -= cpu.Read()
		} else {
			*used += cpu.Read()
		}
	})}
	return used
}

// affinity is the union of the cores on which processes may run; 0 is this one.
func affinity(pids ...int) (cores []int) {
	for _, pid := range pids {
		var set unix.CPUSet
		if unix.SchedGetaffinity(pid, &set) != nil {
			continue // it has ended
		}
		for core := range len(set) * strconv.IntSize {
			if set.IsSet(core) {
				cores = append(cores, core)
			}
		}
	}
	slices.Sort(cores)
	return slices.Compact(cores)
}
