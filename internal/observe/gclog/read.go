package gclog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/files"
	"prony.example/internal/base/lazyregexp"
)

const (
	maxLine     = 64 << 10 // bytes; HotSpot's lines have about 200
	maxProblems = 20       // listed for one file
)

var (
	decorated = lazyregexp.New(`^\[(\d+)ns\](?:\[[^\]]*\])*?\[([a-z0-9,_]+) *\] (.*)$`)
	twice     = lazyregexp.New(`\[\d+ns\]\[`)
	numbered  = lazyregexp.New(`^GC\((\d+)\) (.*)$`)
	paused    = lazyregexp.New(`^Pause (.+?)(?: (\d+[KMG])->(\d+[KMG])\(\d+[KMG]\))? ` +
		`(\d+\.\d+)ms$`)
	cleaned = lazyregexp.New(`^Concurrent cleanup\b.* (\d+[KMG])->(\d+[KMG])\(\d+[KMG]\) ` +
		`(\d+\.\d+)ms$`)
	zended    = lazyregexp.New(`^(?:Minor|Major|Garbage) Collection \(.*\) .*->(\d+M)\(\d+%\)`)
	safepoint = lazyregexp.New(`^Safepoint "([^"]+)",.* Total: +(\d+) ns`)
	using     = lazyregexp.New(`^Using (?:The )?(\w+)( Garbage Collector)?`)
)

// Read reads one process's log. It skips and lists in Problems malformed lines (torn, mixed with
// another JVM's), and ignores lines of other content. Errors come only from r.
func Read(r io.Reader) (Log, error) {
	p := parser{counted: map[int64]bool{}}
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		text, long := strings.TrimRight(string(line), "\r\n"), false
		for errors.Is(err, bufio.ErrBufferFull) { // skip the rest of an overlong line
			long = true
			_, err = in.ReadSlice('\n')
		}
		switch {
		case err == nil && long:
			p.problem(n, "the line is longer than %d bytes", maxLine)
		case err == nil:
			p.take(n, text)
		case errors.Is(err, io.EOF) && text != "":
			p.problem(n, "the line is incomplete, because the JVM ended while writing it: %.60q",
				text)
		case !errors.Is(err, io.EOF):
			return Log{}, fmt.Errorf("read GC log, line %d: %w", n, err)
		}
		if err != nil {
			return p.finish(), nil
		}
	}
}

type parser struct {
	log     Log
	pending []Event        // pauses whose safepoint's line is still to come
	counted map[int64]bool // collections by number
	young   zTable         // of the running collection
	begun   bool           // a collection's line was found
}

func (p *parser) problem(line int, format string, args ...any) {
	p.log.Skipped++
	if len(p.log.Problems) < maxProblems {
		p.log.Problems = append(p.log.Problems,
			fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
	}
}

// take processes a complete line.
func (p *parser) take(n int, line string) {
	m := decorated.FindStringSubmatch(line)
	switch {
	case m == nil:
		p.problem(n, "the line has no time and tags at its beginning: %.60q", line)
	case twice.MatchString(m[3]):
		p.problem(n, "two lines are merged, because two JVMs wrote into one file: %.60q", line)
	default:
		ns, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			p.problem(n, "no time: %v", err)
			return
		}
		p.said(n, ns, m[2], m[3])
	}
}

// said processes the text of a line.
func (p *parser) said(n int, ns int64, tags, text string) {
	if tags == "safepoint" {
		if m := safepoint.FindStringSubmatch(text); m != nil {
			if total := whole(m[2]); total <= ns {
				p.safepoint(ns, m[1], total)
			} else {
				p.problem(n, "a pause of %d ns began before the log's clock", total)
			}
		}
		return
	}
	m := numbered.FindStringSubmatch(text)
	if m == nil {
		if m := using.FindStringSubmatch(text); m != nil && tags == "gc" {
			p.log.Collector = m[1]
			if m[2] != "" {
				p.log.Collector += "GC" // "Using The Z Garbage Collector"
			}
		}
		return
	}
	id := whole(m[1])
	if !p.begun && id > 0 {
		p.problem(n, "the log begins with collection %d, and earlier collections are missing", id)
	}
	p.begun = true
	switch tags {
	case "gc":
		p.collector(ns, id, m[2])
	case "gc,heap":
		if h, done := p.young.take(ns, m[2]); done {
			p.log.heaps = append(p.log.heaps, h)
		}
	}
}

// collector processes a line of the collector.
func (p *parser) collector(ns, id int64, text string) {
	if m := paused.FindStringSubmatch(text); m != nil {
		length := min(millis(m[4]), ns) // a pause cannot begin before the clock
		e := Event{StartNs: ns - length, PauseNs: length, GC: true}
		e.Kind, e.Cause = kindAndCause(m[1])
		p.pending = append(p.pending, e)
		p.count(id, e.StartNs)
		if m[2] != "" {
			p.heap(heap{beginNs: e.StartNs, endNs: ns, before: size(m[2]), after: size(m[3])})
		}
		return
	}
	if m := cleaned.FindStringSubmatch(text); m != nil { // Shenandoah frees while threads run
		p.heap(heap{beginNs: ns - millis(m[3]), endNs: ns, before: size(m[1]), after: size(m[2])})
		return
	}
	if m := zended.FindStringSubmatch(text); m != nil {
		p.count(id, ns)
		p.log.remaining = append(p.log.remaining, left{ns, size(m[1])})
	}
}

// heap records a collection of the whole heap.
func (p *parser) heap(h heap) {
	p.log.heaps = append(p.log.heaps, h)
	p.log.remaining = append(p.log.remaining, left{h.endNs, h.after})
}

func (p *parser) count(id, ns int64) {
	if !p.counted[id] {
		p.counted[id] = true
		p.log.counts = append(p.log.counts, ns)
	}
}

// safepoint processes the line that ends a pause of all threads. The collector's pauses since the
// previous safepoint took place in this one, in sequence. Together they get all of its time,
// because threads stood still from its beginning to its end.
func (p *parser) safepoint(ns int64, name string, total int64) {
	start := ns - total
	var within []Event
	for _, e := range p.pending {
		if e.EndNs() > start {
			within = append(within, e)
		} else { // the line of its safepoint is missing
			p.log.Events = append(p.log.Events, e)
		}
	}
	p.pending = nil
	if len(within) == 0 {
		within = []Event{{GC: collects(name), Kind: name}}
	}
	for i, e := range within {
		until := ns
		if i < len(within)-1 {
			until = min(max(e.EndNs(), start), ns)
		}
		e.StartNs, e.PauseNs = start, until-start
		start = until
		p.log.Events = append(p.log.Events, e)
	}
	if within[0].GC && strings.HasPrefix(name, "ZMarkStart") {
		p.young.began = ns
	}
}

// collects reports whether a safepoint's operation is a collector's, by its name in HotSpot's
// vmOperation.hpp.
func collects(operation string) bool {
	prefixes := []string{"G1", "Serial", "Parallel", "GenCollect", "Z", "Shenandoah"}
	is := func(prefix string) bool { return strings.HasPrefix(operation, prefix) }
	return slices.ContainsFunc(prefixes, is)
}

func (p *parser) finish() Log {
	p.log.Events = append(p.log.Events, p.pending...)
	slices.SortStableFunc(p.log.Events, byTime)
	slices.SortStableFunc(p.log.heaps, func(a, b heap) int { return cmp.Compare(a.endNs, b.endNs) })
	return p.log
}

// kindAndCause splits "Young (Normal) (G1 Evacuation Pause)". G1's young pauses have a kind in
// brackets before the cause. Shenandoah's brackets describe additional work, and it logs no cause.
func kindAndCause(text string) (kind, cause string) {
	kind, tail, bracketed := strings.Cut(text, " (")
	if !bracketed {
		return text, ""
	}
	first, second, two := strings.Cut(strings.TrimSuffix(tail, ")"), ") (")
	switch {
	case two:
		return kind + " (" + first + ")", second
	case first == "unload classes" || strings.HasPrefix(kind, "Init ") ||
		strings.HasPrefix(kind, "Final ") || strings.HasPrefix(kind, "Degenerated"):
		return text, ""
	}
	return kind, first
}

// whole, millis and size convert digits that the patterns matched. They return 0 for numbers out of
// range.
func whole(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0 // no clock and no heap has more than 19 digits
	}
	return n
}

// millis converts "3.454" to nanoseconds.
func millis(ms string) int64 {
	left, right, _ := strings.Cut(ms, ".")
	return fitting(whole(left), 1e6) + whole((right + "000000")[:6])
}

// size converts "23M" to bytes; "" is 0.
func size(text string) int64 {
	if text == "" {
		return 0
	}
	unit := map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[text[len(text)-1]]
	return fitting(whole(text[:len(text)-1]), unit)
}

// fitting returns n units, or 0 above a quarter of int64, which no clock and no heap reaches. Sums
// of two results cannot overflow.
func fitting(n, unit int64) int64 {
	if n > math.MaxInt64/4/unit {
		return 0
	}
	return n * unit
}

// LogName returns the log's file name of a trial's JVM from the name of its part of the target and
// its process id or %p. Both are needed: a part may be several JVMs, and in containers each has
// process id 1.
func LogName(trial, part, pid string) string {
	return trial + "." + part + "." + pid + logSuffix
}

const logSuffix = ".gc.log"

// ReadTrial reads the logs of a trial's JVMs in a folder, with names of LogName; logs of older runs
// have no part.
func ReadTrial(dir, trial string) (logs []Log, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("find garbage collectors' logs: %w", err)
	}
	for _, e := range entries {
		tail, ours := strings.CutPrefix(e.Name(), trial+".")
		tail, complete := strings.CutSuffix(tail, logSuffix)
		if !ours || !complete {
			continue
		}
		if _, err := strconv.Atoi(tail[strings.LastIndexByte(tail, '.')+1:]); err != nil {
			continue
		}
		f, err := files.Plain(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a garbage collector's log: %w", err)
		}
		log, err := Read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		logs = append(logs, log)
	}
	return logs, nil
}

var (
	zRow  = lazyregexp.New(`^(?:[Yy]: )? *(Used|Allocated): +(.*)$`)
	zCell = lazyregexp.New(`(\d+[KMG]) \(\d+%\)|-`)
)

const zColumns = 4 // mark start, mark end, relocate start, relocate end; two more for extremes

// zTable parses the table of the young generation that generational ZGC logs at the end of each
// collection:
//
//	Y: Heap Statistics:
//	Y:          Mark Start   Mark End  Relocate Start  Relocate End  High  Low
//	Y:  Used:   202M (79%)   …                         32M (12%)
//	Y: Young Generation Statistics:
//	Y:          Mark Start   Mark End  Relocate Start  Relocate End
//	Y:      Used:  178M (70%)  178M (70%)  24M (9%)    8M (3%)
//	Y: Allocated:       -        0M (0%)    2M (1%)    5M (2%)
//
// Threads allocate only in the young generation, so its use shows allocation. "Allocated" is what
// threads allocated since the mark's start (ZStatHeap::mutator_allocated in zStat.cpp), without the
// collector's copies. The row of use that counts is the last one before it. Minor collections have
// y instead of Y; ZGC without generations logs no letter and one table.
type zTable struct {
	began int64 // start of the last mark
	h     heap
}

// take processes a line of the table, and returns the heap at the line with the allocation.
func (t *zTable) take(ns int64, text string) (heap, bool) {
	m := zRow.FindStringSubmatch(text)
	if m == nil {
		return heap{}, false
	}
	cells := zCell.FindAllStringSubmatch(m[2], -1)
	if len(cells) < zColumns {
		return heap{}, false
	}
	first, last := size(cells[0][1]), size(cells[zColumns-1][1])
	if m[1] == "Allocated" {
		t.h.allocated = last
		return t.h, t.h.beginNs > 0
	}
	t.h = heap{beginNs: t.began, endNs: ns, before: first, after: last}
	return heap{}, false
}
