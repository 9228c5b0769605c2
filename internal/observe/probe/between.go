package probe

import "prony.example/record"

// Between returns what the service consumed and what the host did from mark a to mark b. It panics
// unless both are of one sampler and a is before b. samples provides the maxima. requests is the
// number of responses in the window; if it is 0, the figures per request are 0. cores is the
// service's limit in cores (2, or 0.5 for a quota).
//
// -1 means unknown, as in marks, except for PSSEndBytes, which is 0 then, as the record defines.
//
// Switches and run delay are sums over the threads of the service: differences for threads alive at
// both marks, complete counters for threads that started in between. Counters of threads that ended
// in between are lost, because /proc drops them, so the sums are lower bounds; Covered says how
// tight. (The kernel's taskstats keeps the counters, but needs CAP_NET_ADMIN.)
func Between(a, b Mark, samples Series, requests int64, cores float64) (record.Usage, record.Host) {
	if b.TNs <= a.TNs || a.Source != b.Source {
		panic("probe: Between requires two marks of one sampler, with the earlier mark first")
	}
	if a.Lost || b.Lost {
		return lost(b.Source, b.TNs-a.TNs)
	}
	window := b.TNs - a.TNs
	threads := difference(a.Threads, b.Threads)
	u := record.Usage{
		Source:            b.Source,
		WindowNs:          window,
		CPUNs:             delta(a.CPUNs, b.CPUNs),
		UserNs:            delta(a.UserNs, b.UserNs),
		SystemNs:          delta(a.SystemNs, b.SystemNs),
		RSSMaxBytes:       max(a.RSSBytes, b.RSSBytes),
		RSSEndBytes:       b.RSSBytes,
		PSSEndBytes:       max(b.PSSBytes, 0),
		ThreadsMax:        max(a.ThreadCount, b.ThreadCount),
		SwitchesVoluntary: threads.Voluntary,
		SwitchesForced:    threads.Forced,
		RunDelayNs:        threads.DelayNs,
		ThrottledNs:       delta(a.ThrottledNs, b.ThrottledNs),
		ThrottledPeriods:  delta(a.ThrottledPeriods, b.ThrottledPeriods),
		PageFaultsMajor:   delta(a.MajorFaults, b.MajorFaults),
		NetworkBytes:      delta(a.NetBytes, b.NetBytes),
	}
	u.CPUShare = share(u.CPUNs, cores*float64(window))
	u.CPUPerRequestNs = perRequest(u.CPUNs, requests)
	u.NetworkBytesPerRequest = perRequest(u.NetworkBytes, requests)
	u.SwitchesPerRequest = unknown
	if u.SwitchesVoluntary >= 0 {
		u.SwitchesPerRequest = perRequest(u.SwitchesVoluntary+u.SwitchesForced, requests)
	}
	u.Roles = a.Roles.between(b.Roles)
	for i, p := range b.Parts {
		u.Parts = append(u.Parts, record.Part{Name: p.Name, RSSBytes: p.RSSBytes,
			Threads: p.Threads, CPUNs: delta(a.Parts[i].CPUNs, p.CPUNs)})
	}
	for i, tNs := range samples.TNs {
		if samples.from(i) >= a.TNs && tNs <= b.TNs {
			u.RSSMaxBytes = max(u.RSSMaxBytes, samples.RSSBytes[i])
			u.ThreadsMax = max(u.ThreadsMax, int(samples.Threads[i]))
		}
	}
	if a.Processes+b.Processes == 0 { // none visible, for example on another machine
		u.RSSMaxBytes, u.ThreadsMax = unknown, unknown
		u.NetworkBytes, u.NetworkBytesPerRequest = unknown, unknown // not its traffic
	}
	h := hostBetween(a, b, u.CPUNs)
	if a.Processes+b.Processes == 0 {
		h.EnergyJ = 0 // not the service's energy either
	}
	return u, h
}

// lost returns the unknown values for a window with a lost mark.
func lost(source string, window int64) (record.Usage, record.Host) {
	return record.Usage{Source: source, WindowNs: window,
			CPUNs: unknown, CPUShare: unknown, CPUPerRequestNs: unknown,
			UserNs: unknown, SystemNs: unknown, RSSMaxBytes: unknown, RSSEndBytes: unknown,
			ThreadsMax: unknown, SwitchesVoluntary: unknown, SwitchesForced: unknown,
			SwitchesPerRequest: unknown, RunDelayNs: unknown, ThrottledNs: unknown,
			ThrottledPeriods: unknown, PageFaultsMajor: unknown, NetworkBytes: unknown,
			NetworkBytesPerRequest: unknown},
		record.Host{StealShare: unknown, OtherCPUShare: unknown, PressureCPU: unknown,
			PressureMemory: unknown, PressureIO: unknown}
}

// hostBetween takes all cores' time from /proc/stat itself, so that shares of one file add up. Busy
// time minus the trial's own work may come out below zero, because busy moves in ticks and work
// does not; hostBetween then returns 0. If the kernel accounts interrupts separately
// (CONFIG_IRQ_TIME_ACCOUNTING), interrupts by the trial's packets count as others' work.
func hostBetween(a, b Mark, serviceNs int64) record.Host {
	window := float64(b.TNs - a.TNs)
	pressed := func(aUs, bUs int64) float64 { return share(scaled(delta(aUs, bUs), 1000), window) }
	h := record.Host{
		PressureCPU:    pressed(a.Pressure.CPUUs, b.Pressure.CPUUs),
		PressureMemory: pressed(a.Pressure.MemoryUs, b.Pressure.MemoryUs),
		PressureIO:     pressed(a.Pressure.IOUs, b.Pressure.IOUs),
	}
	ownNs := int64(unknown)
	if lab := delta(a.LabNs, b.LabNs); lab >= 0 && serviceNs >= 0 {
		ownNs = serviceNs + lab
	}
	if uj := delta(a.EnergyUJ, b.EnergyUJ); uj > 0 {
		h.EnergyJ = float64(uj) / 1e6
	}
	h.StealShare, h.OtherCPUShare = Shares(a.Host, b.Host, ownNs)
	return h
}

// Shares returns the shares of all cores' time between two readings that the hypervisor took and
// that others used: busy time minus ownNs. -1 is unknown: both without /proc/stat or if no tick has
// passed, foreign also if ownNs is -1.
func Shares(a, b HostTicks, ownNs int64) (steal, foreign float64) {
	total := delta(a.Total, b.Total)
	if total <= 0 {
		return unknown, unknown
	}
	steal, foreign = share(delta(a.Steal, b.Steal), float64(total)), unknown
	if ownNs >= 0 {
		busy := delta(a.Busy, b.Busy) * TickNs
		foreign = float64(max(busy-ownNs, 0)) / float64(total*TickNs)
	}
	return steal, foreign
}

// difference sums what b's threads did since a; both are in order of PID and TID. If a thread's
// counters are below those in a, it is a new thread with a reused number.
func difference(a, b []Thread) Thread {
	if len(b) == 0 {
		return Thread{Voluntary: unknown, Forced: unknown, RunNs: unknown, DelayNs: unknown}
	}
	var sum Thread
	lifeNs := int64(0)
	for _, t := range b {
		lifeNs += t.RunNs
		for len(a) > 0 && byThread(a[0], t) < 0 {
			a = a[1:]
		}
		if len(a) > 0 && byThread(a[0], t) == 0 && !a[0].after(t) {
			t.Voluntary -= a[0].Voluntary
			t.Forced -= a[0].Forced
			t.RunNs -= a[0].RunNs
			t.DelayNs -= a[0].DelayNs
		}
		sum.Voluntary += t.Voluntary
		sum.Forced += t.Forced
		sum.RunNs += t.RunNs
		sum.DelayNs += t.DelayNs
	}
	if lifeNs == 0 { // a kernel without CONFIG_SCHED_INFO writes zeros
		sum.RunNs, sum.DelayNs = unknown, unknown
	}
	return sum
}

// after reports whether t cannot be an earlier reading of next.
func (t Thread) after(next Thread) bool {
	return t.Voluntary > next.Voluntary || t.Forced > next.Forced ||
		t.RunNs > next.RunNs || t.DelayNs > next.DelayNs
}

// delta returns the increase of a counter, or unknown. Two kinds of counters may decrease: sums
// over processes of which one ended without a parent among the others, and idle time, which the
// kernel estimates.
func delta(a, b int64) int64 {
	if a < 0 || b < 0 {
		return unknown
	}
	return max(b-a, 0)
}

func share(value int64, total float64) float64 {
	if value < 0 || total <= 0 {
		return unknown
	}
	return float64(value) / total
}

func perRequest(value, requests int64) float64 {
	if value < 0 {
		return unknown
	}
	if requests <= 0 {
		return 0
	}
	return float64(value) / float64(requests)
}
