package gc

import "prony/internal/pattern"

var (
	zRow  = pattern.New(`^(?:[Yy]: )? *(Used|Allocated): +(.*)$`)
	zCell = pattern.New(`(\d+[KMG]) \(\d+%\)|-`)
)

const zColumns = 4 // mark start, mark end, relocate start, relocate end; two more for extremes

// zTable reads the table of the young generation that generational ZGC logs at the end of each of
// its collections:
//
//	Y: Heap Statistics:
//	Y:          Mark Start   Mark End  Relocate Start  Relocate End  High  Low
//	Y:  Used:   202M (79%)   …                         32M (12%)
//	Y: Young Generation Statistics:
//	Y:          Mark Start   Mark End  Relocate Start  Relocate End
//	Y:      Used:  178M (70%)  178M (70%)  24M (9%)    8M (3%)
//	Y: Allocated:       -        0M (0%)    2M (1%)    5M (2%)
//
// Threads allocate in the young generation only, so its use tells allocation; "Allocated" is what
// they allocated since the mark's start (ZStatHeap::mutator_allocated in zStat.cpp), without what
// the collector itself copied. So the last row of use before it is the one that counts. Minor
// collections have y for Y; the collections of ZGC before generations have no letter and one table.
type zTable struct {
	began int64 // the last start of a mark
	h     heap
}

// take takes a line of the table and returns what it says once it says what was allocated.
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
