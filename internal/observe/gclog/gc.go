// Package gclog reads what HotSpot's collectors log about themselves: which pauses a process made,
// why, and how much its heap held before and after.
//
//	LogOption ─► JVM ─► file ─► Read ─► Log ─► Window: record.GC of a load's window
//	                                        └► During: the pauses a request ran into
//
// A pause is the whole safepoint, because that is what a request waits for: from the moment threads
// are asked to stop to the moment they may go on. What the collector itself logs as "Pause" begins
// only once all of them have stopped. Concurrent phases are no pauses.
//
// All times are System.nanoTime, which HotSpot reads from CLOCK_MONOTONIC on Linux
// (os::javaTimeNanos in os_posix.cpp): a moment m of clock.Mono is m + clock.Kernel() here.
//
// Non-goals: other virtual machines (OpenJ9, Graal's native images), and the phases of a pause.
package gclog

import (
	"cmp"
	"slices"
	"strings"

	"prony.example/record"
)

// LogOption makes a HotSpot of 17 or newer log all that Read wants and little else, with {file} in
// place of the file's path. HotSpot replaces %p in a path by the process's id, which a JVM that
// starts another one needs: both would write into one file. A path with a colon, a comma or a space
// is read as something else. A line's time is that of its writing: a pause is logged as it ends.
//
// gc tells of pauses and of the heap, safepoint how long all threads stood still, and gc+heap what
// was allocated while ZGC was at work, which no difference of two heaps can tell.
const LogOption = "-Xlog:gc,gc+heap,safepoint:file={file}:timenanos,tags:filecount=0"

// Event is a pause of all threads.
type Event struct {
	StartNs int64 // CLOCK_MONOTONIC
	PauseNs int64
	// GC is false for a pause that some other part of the JVM wanted: deoptimisation, a heap
	// inspection, biased locks of old.
	GC    bool
	Kind  string // "Young (Normal)", "Full", or the name of the safepoint
	Cause string // "G1 Evacuation Pause", "System.gc()"; empty where it says none
}

// EndNs is when the threads went on.
func (e Event) EndNs() int64 { return e.StartNs + e.PauseNs }

// Log is what one process logged.
type Log struct {
	Collector string // "G1", "Serial", "Parallel", "ZGC", "Shenandoah"; empty: it did not say
	Events    []Event
	Problems  []string // "line 7: …", of lines that were skipped, at most maxProblems
	Skipped   int64    // lines that were skipped, all of them

	counts    []int64 // when collections are counted: at the first pause, with ZGC at the last line
	heaps     []heap  // by time
	remaining []left  // by time
}

// left is the whole heap's use when something of it had been freed.
type left struct{ ns, bytes int64 }

// heap is what allocation goes to, all of it or ZGC's young generation, as one collection found and
// left it. What was allocated between two of them is before of this one less after of the last;
// allocated is what came while this one was at work.
type heap struct {
	beginNs, endNs           int64
	before, after, allocated int64
}

// During returns the pauses, of the collector and others, that overlapped [fromNs, toNs], by time.
func (l Log) During(fromNs, toNs int64) []Event {
	var events []Event
	for _, e := range l.Events {
		if e.StartNs <= toNs && e.EndNs() >= fromNs {
			events = append(events, e)
		}
	}
	return events
}

// Window sums up [fromNs, toNs). Pauses count with the part that lies in it, a collection where its
// first pause begins (ZGC: where it ends).
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
			g.HeapAfterBytes = after.bytes // of before the window, if nothing was collected in it
		}
	}
	g.AllocatedBytes = l.allocated(fromNs, toNs)
	return g
}

const (
	minHeaps   = 2   // in a window: fewer tell no rate
	minCovered = 0.5 // of a window, to speak for the rest of it
)

// allocated is the sum of what each heap before a collection held more than the one after the
// collection before it. Between two collections allocation is taken to be even, so a window's edges
// cut such a stretch in proportion. Before the log's first collection and after its last nothing is
// known: the window's known part speaks for it if it is at least half of it.
//
// Against programs that count what they allocate, this is within 3 % but for ZGC, which counts in
// pages that threads leave half full: 3 to 8 % too much in heaps of 256 MiB and more, 16 % in one
// of 128. What Shenandoah copies while threads run counts as allocated, what dies in it does not.
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

// Sum is the same window of several JVMs of one trial. Heaps add up; the longest pause is that of
// any; one unknown allocation makes the sum unknown.
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
