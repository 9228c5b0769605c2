package probe

import (
	"math"
	"time"
)

// logRows limits the stored samples: 13 minutes at the default period, then half the resolution for
// twice as long, and so on.
const logRows = 8192

// row is one sample, or several merged ones. Counters are cumulative, so merging loses no
// consumption.
type row struct {
	tNs          int64
	cpuNs, labNs int64
	rssBytes     int64
	threads      int64
	chargedBytes int64
	host         HostTicks
	hostFresh    int64 // time of host's reading
}

// merge combines earlier and later samples: the later's counters, maxima of both.
func merge(earlier, later row) row {
	later.rssBytes = max(earlier.rssBytes, later.rssBytes)
	later.threads = max(earlier.threads, later.threads)
	later.chargedBytes = max(earlier.chargedBytes, later.chargedBytes)
	return later
}

// log stores a limited number of rows with `every` samples each, without allocations after newLog.
// The first sample is the origin of the first row's rates.
type log struct {
	origin   row
	rows     []row
	pending  row // samples of the incomplete last row
	retained int // number of samples in pending
	every    int
	samples  int64
}

// newLog returns a log for an even number of rows, because rows are halved.
func newLog(rows int) log { return log{rows: make([]row, 0, rows), every: 1} }

func (l *log) add(r row) {
	l.samples++
	if l.samples == 1 {
		l.origin = r
		return
	}
	if l.retained > 0 {
		r = merge(l.pending, r)
	}
	l.pending = r
	l.retained++
	if l.retained < l.every {
		return
	}
	if len(l.rows) == cap(l.rows) {
		for i := range len(l.rows) / 2 {
			l.rows[i] = merge(l.rows[2*i], l.rows[2*i+1])
		}
		l.rows = l.rows[:len(l.rows)/2]
		l.every *= 2 // pending is half a row now
		return
	}
	l.rows = append(l.rows, r)
	l.retained = 0
}

// copy returns the origin, all rows and the incomplete last row.
func (l *log) copy() (rows []row, every int) {
	if l.samples == 0 {
		return nil, l.every
	}
	rows = append(make([]row, 0, len(l.rows)+2), l.origin)
	rows = append(rows, l.rows...)
	if l.retained > 0 {
		rows = append(rows, l.pending)
	}
	return rows, l.every
}

// Series holds the samples as columns of one length. Row i covers the time from row i-1 to TNs[i]
// (the first from the sampler's start); rates are means over it. Memory and threads are the
// sample's values, or the maxima of a row's samples if Every is more than 1.
//
// Rates are rounded to 0.0001, about the resolution of the counters in a tenth of a second.
type Series struct {
	PeriodNs int64  `json:"periodNs"` // between samples
	Every    int    `json:"every"`    // samples per row: a power of two
	Source   string `json:"source"`   // of cpuCores, as record.Usage.Source

	TNs          []int64   `json:"tNs"`      // since Start
	CPUCores     []float64 `json:"cpuCores"` // service, in cores: CPU seconds per second
	LabCores     []float64 `json:"labCores"` // the lab and a foreign generator, in cores
	RSSBytes     []int64   `json:"rssBytes"`
	Threads      []int64   `json:"threads"`
	ChargedBytes []int64   `json:"chargedBytes,omitempty"` // by the memory controller, if any
	BusyShare    []float64 `json:"busyShare"`              // of all cores' time, in ticks of 10 ms
	StealShare   []float64 `json:"stealShare"`             // of all cores' time, in ticks of 10 ms
}

// newSeries makes columns of rows. The first row is the origin, which has no row in the result.
func newSeries(rows []row, every int, period time.Duration, source string, charged bool) Series {
	n := max(len(rows)-1, 0)
	s := Series{
		PeriodNs: int64(period), Every: every, Source: source,
		TNs:      make([]int64, n),
		CPUCores: make([]float64, n), LabCores: make([]float64, n),
		RSSBytes: make([]int64, n), Threads: make([]int64, n),
		BusyShare: make([]float64, n), StealShare: make([]float64, n),
	}
	if charged {
		s.ChargedBytes = make([]int64, n)
	}
	for i := range n {
		before, r := rows[i], rows[i+1]
		spent := float64(r.tNs - before.tNs)
		s.TNs[i] = r.tNs
		s.CPUCores[i] = rounded(r.cpuNs-before.cpuNs, spent)
		s.LabCores[i] = rounded(r.labNs-before.labNs, spent)
		s.RSSBytes[i], s.Threads[i] = r.rssBytes, r.threads
		if charged {
			s.ChargedBytes[i] = r.chargedBytes
		}
	}
	s.fillHost(rows)
	return s
}

// fillHost spreads each reading of /proc/stat over the rows since the previous reading, because the
// file may be read less often than others. Rows after the last reading get its shares, or -1
// without a reading.
func (s *Series) fillHost(rows []row) {
	filled := 0 // number of rows that have their shares
	busy, steal := float64(unknown), float64(unknown)
	for i := range s.TNs {
		before, r := rows[i], rows[i+1] // before holds the last reading, however old
		if r.hostFresh == before.hostFresh {
			continue
		}
		total := float64(r.host.Total - before.host.Total)
		busy = rounded(r.host.Busy-before.host.Busy, total)
		steal = rounded(r.host.Steal-before.host.Steal, total)
		for ; filled <= i; filled++ {
			s.BusyShare[filled], s.StealShare[filled] = busy, steal
		}
	}
	for ; filled < len(s.TNs); filled++ {
		s.BusyShare[filled], s.StealShare[filled] = busy, steal
	}
}

// from returns the begin of the time that row i's memory and threads are maxima of.
func (s Series) from(i int) int64 {
	if s.Every == 1 {
		return s.TNs[i]
	}
	if i == 0 {
		return 0
	}
	return s.TNs[i-1]
}

// rounded returns a rate. A sum over processes steps back when one of them ends, which gives the
// rate 0.
func rounded(value int64, total float64) float64 {
	if value <= 0 || total <= 0 {
		return 0
	}
	return math.Round(float64(value)/total*1e4) / 1e4
}
