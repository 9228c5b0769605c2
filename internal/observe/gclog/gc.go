// Package gclog reads the logs of HotSpot's collectors: the pauses of a process, their causes, and
// the heap's use before and after.
//
//	LogOption ─► JVM ─► file ─► Read ─► Log ─► Window: record.GC of a load's window
//	                                        └► During: the pauses a request ran into
//
// A pause is the whole safepoint, because requests wait for all of it: from the request that
// threads stop until they may continue. The collector's own "Pause" begins only when all threads
// have stopped. Concurrent phases are not pauses.
//
// All times are System.nanoTime, which HotSpot reads from CLOCK_MONOTONIC on Linux
// (os::javaTimeNanos in os_posix.cpp): a time t of clock.Mono is t + clock.Kernel() here.
//
// Non-goals: other virtual machines (OpenJ9, Graal's native images), and the phases of a pause.
package gclog

import (
	"cmp"
	"slices"
	"strings"

	"prony.example/record"
)

// LogOption makes HotSpot 17 or newer log what Read needs and little else; replace {file} by the
// file's path. HotSpot replaces %p in the path by the process id, which keeps JVMs that start other
// JVMs from writing into one file. HotSpot misreads paths with colons, commas or spaces. A line's
// time is the time of its writing: a pause is logged at its end.
//
// gc logs pauses and the heap, safepoint the time for which all threads stood still, and gc+heap
// the allocation during a ZGC cycle, which differences of heap sizes cannot show.
const LogOption = "-Xlog:gc,gc+heap,safepoint:file={file}:timenanos,tags:filecount=0"

// Event is a pause of all threads.
type Event struct {
	StartNs int64 // CLOCK_MONOTONIC
	PauseNs int64
	// GC is false for a pause that another part of the JVM requested: deoptimization, a heap
	// inspection, biased locks in old versions.
	GC    bool
	Kind  string // "Young (Normal)", "Full", or the name of the safepoint
	Cause string // "G1 Evacuation Pause", "System.gc()"; empty if not logged
}

// EndNs returns the time at which the threads continued.
func (e Event) EndNs() int64 { return e.StartNs + e.PauseNs }

// Log holds the events of one process's log.
type Log struct {
	Collector string // "G1", "Serial", "Parallel", "ZGC", "Shenandoah"; empty if not logged
	Events    []Event
	Problems  []string // "line 7: …", of skipped lines, at most maxProblems
	Skipped   int64    // number of skipped lines

	counts    []int64 // times of collections: start of the first pause, with ZGC the end
	heaps     []heap  // by time
	remaining []left  // by time
}

// left is the use of the whole heap after a collection freed memory.
type left struct{ ns, bytes int64 }

// heap is the use of the space where threads allocate, the whole heap or ZGC's young generation,
// before and after a collection. The allocation between two collections is the later one's before
// minus the earlier one's after; allocated is the allocation during this collection.
type heap struct {
	beginNs, endNs           int64
	before, after, allocated int64
}

// During returns all pauses that overlapped [fromNs, toNs], in order of time.
func (l Log) During(fromNs, toNs int64) []Event {
	var events []Event
	for _, e := range l.Events {
		if e.StartNs <= toNs && e.EndNs() >= fromNs {
			events = append(events, e)
		}
	}
	return events
}

// Window sums [fromNs, toNs). Pauses count with the part inside it. A collection counts if its
// first pause begins in it (ZGC: if its end is in it).
func (l Log) Window(fromNs, toNs int64) record.GC {
	g := record.GC{Collector: l.Collector}
	for _, e := range l.Events {
		if part := min(e.EndNs(), toNs) - max(e.StartNs, fromNs); e.GC && part > 0 {
			g.PauseNs += part
			g.PauseMaxNs = max(g.PauseMaxNs, part)
		}
	}
	for _, ns := range l.counts {
		if ns >= fromNs && ns < toNs {
			g.Collections++
		}
	}
	for _, after := range l.remaining {
		if after.ns < toNs {
			g.HeapAfterBytes = after.bytes // from before the window, if it has no collection
		}
	}
	g.AllocatedBytes = l.allocated(fromNs, toNs)
	return g
}

const (
	minHeaps   = 2   // in a window: fewer show no rate
	minCovered = 0.5 // share of a window that must be known to extrapolate to the rest
)

// allocated sums the differences between each heap before a collection and the heap after the
// previous collection. It assumes even allocation between two collections, and takes a proportional
// part at a window's edges. Before the log's first collection and after its last the allocation is
// unknown: the window's known part is extrapolated if it is at least half of the window.
//
// Compared with programs that count their allocations, the result is within 3 % except for ZGC,
// which counts in pages that threads leave half full: 3 to 8 % too much in heaps of 256 MiB and
// more, 16 % in a heap of 128 MiB. Objects that Shenandoah copies while threads run count as
// allocated; objects that die meanwhile don't.
func (l Log) allocated(fromNs, toNs int64) int64 {
	inside := 0
	for _, h := range l.heaps {
		if h.beginNs >= fromNs && h.endNs < toNs {
			inside++
		}
	}
	if inside < minHeaps {
		return -1
	}
	var bytes, covered float64
	add := func(n, begin, end int64) {
		part := float64(min(end, toNs) - max(begin, fromNs))
		if part <= 0 || end <= begin {
			return
		}
		covered += part
		bytes += float64(n) * part / float64(end-begin)
	}
	last := l.heaps[0]
	for _, h := range l.heaps[1:] {
		add(h.before-last.after, last.endNs, h.beginNs)
		add(h.allocated, h.beginNs, h.endNs)
		last = h
	}
	if covered < minCovered*float64(toNs-fromNs) || bytes < 0 {
		return -1
	}
	return int64(bytes * float64(toNs-fromNs) / covered)
}

// Sum combines the same window of several JVMs of one trial. Heaps add up, the longest pause is the
// longest of any JVM, and one unknown allocation makes the sum unknown.
func Sum(windows []record.GC) record.GC {
	var sum record.GC
	var collectors []string
	for _, w := range windows {
		collectors = append(collectors, w.Collector)
		sum.Collections += w.Collections
		sum.PauseNs += w.PauseNs
		sum.PauseMaxNs = max(sum.PauseMaxNs, w.PauseMaxNs)
		sum.HeapAfterBytes += w.HeapAfterBytes
		if w.AllocatedBytes < 0 || sum.AllocatedBytes < 0 {
			sum.AllocatedBytes = -1
		} else {
			sum.AllocatedBytes += w.AllocatedBytes
		}
	}
	slices.Sort(collectors)
	sum.Collector = strings.Join(slices.Compact(collectors), ", ")
	return sum
}

func byTime(a, b Event) int { return cmp.Compare(a.StartNs, b.StartNs) }
