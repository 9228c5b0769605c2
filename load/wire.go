package load

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/arrivalcheck"
)

// The messages of a generator to a ledger in another process: a piece each second, and the books at
// the end with all that no piece had. Both consist of LEB128 numbers (encoding/binary); a histogram
// is its nonempty bins, and percentiles are never sent. Both processes must run the same version of
// this program, so fields have no names. The reader does not trust messages: it checks a message
// completely before it adds any of it.

const (
	pieceKind = 'p'
	booksKind = 'b'

	// Bounds that keep the sum over thousands of generators within an int64; see Ledger.room for
	// books.
	countMax = 1 << 62
	toldMax  = 1 << 50 // of a number in a piece
	binMax   = 1 << 48 // samples in a histogram
	wordMax  = 4096    // bytes of a text

	threadsMax   = 4096 // per generator
	intervalsMax = 32   // per piece
	// halfBins is the number of bins per doubling, except in the lowest 2·halfBins bins, which have
	// one value each (three digits, from 1 ns on: HdrHistogram's subBucketHalfCount).
	halfBins = 1 << 10
)

// Told is the progress of a load in another process.
type Told struct {
	Elapsed     time.Duration // since the beginning of the lead-in
	Window      bool          // whether the window is open
	Totals                    // since the beginning
	MemoryBytes int64         // of the whole process, resident
	LagMaxNs    int64         // since the last piece
	Answers     int64         // responses with a time since the last piece
}

// writer builds a message.
type writer struct{ b []byte }

func (w *writer) number(n int64) { w.b = binary.AppendUvarint(w.b, uint64(max(n, 0))) }

// moment writes a number that can be negative.
func (w *writer) moment(n int64) { w.b = binary.AppendVarint(w.b, n) }

// word writes a text, which can contain any bytes of a service.
func (w *writer) word(s string) {
	s = strings.ToValidUTF8(s[:min(len(s), wordMax)], "?")
	w.number(int64(len(s)))
	w.b = append(w.b, s...)
}

// bins writes pairs of distance to the next nonempty bin and its count. A distance of 0 ends them.
func (w *writer) bins(h *hdrhistogram.Histogram) {
	if h.TotalCount() > 0 {
		last := -1
		for i, n := range h.Export().Counts {
			if n > 0 {
				w.number(int64(i - last))
				w.number(n)
				last = i
			}
		}
	}
	w.number(0)
}

func (w *writer) interval(index int, iv *interval) {
	w.number(int64(index))
	for _, n := range iv.counters() {
		w.number(*n)
	}
	w.bins(iv.response)
}

func (iv *interval) counters() []*int64 {
	return []*int64{&iv.sent, &iv.done, &iv.failed, &iv.ended}
}

func (t *Totals) counters() []*int64 {
	out := []*int64{&t.Due, &t.Sent, &t.Done, &t.Failed, &t.BytesIn, &t.InFlight}
	for i := range t.Errors {
		out = append(out, &t.Errors[i])
	}
	return out
}

// piece returns the message with all that was measured since the last piece.
func (v *spectacle) piece(p *Progress) []byte {
	w := &writer{b: []byte{pieceKind}}
	w.number(int64(p.Elapsed))
	w.number(map[bool]int64{true: 1}[p.Window])
	for _, n := range p.Totals.counters() {
		w.number(*n)
	}
	w.number(resident())
	w.bins(p.Response)
	w.bins(p.Lag)
	r := v.r
	ended := r.lives[0].ended.Load()
	for i := range r.lives {
		ended = min(ended, r.lives[i].ended.Load()) // every worker is past these intervals
	}
	ended = min(ended, int64(r.reported)+intervalsMax)
	w.number(max(ended-int64(r.reported), 0))
	for ; r.reported < int(ended); r.reported++ {
		iv := r.workers[0].book.intervals[r.reported]
		if len(r.workers) > 1 {
			iv.response = iv.response.Clone()
		}
		for _, candidate := range r.workers[1:] {
			iv.add(&candidate.book.intervals[r.reported])
		}
		w.interval(r.reported, &iv)
	}
	return w.b
}

// Books returns the message for Close: all measurements except the intervals already streamed.
func (l *Ledger) Books() []byte {
	w := &writer{b: []byte{booksKind}}
	for _, n := range l.counters() {
		w.number(*n)
	}
	for _, n := range l.greatest() {
		w.number(*n)
	}
	for _, s := range l.words() {
		w.word(*s)
	}
	w.word(l.hash)
	for _, h := range l.histograms() {
		w.bins(h)
	}
	w.number(int64(len(l.singles)))
	for _, t := range l.singles {
		w.number(int64(len(t.Due)))
		for k := range t.Due {
			w.moment(t.Due[k])
			w.moment(t.Left[k] - t.Due[k])
			w.number(t.Response[k])
		}
	}
	for y := range l.marks {
		w.number(int64(len(l.marks[y])))
		for i := range l.marks[y] {
			w.mark(&l.marks[y][i])
		}
	}
	w.number(int64(len(l.total.intervals) - l.reported))
	for i := l.reported; i < len(l.total.intervals); i++ {
		w.interval(i, &l.total.intervals[i])
	}
	return w.b
}

func (w *writer) mark(m *mark) {
	w.b = binary.AppendUvarint(w.b, m.k)
	w.b = binary.AppendUvarint(w.b, m.draw)
	for _, atNs := range []int64{m.due, m.sent, m.first, m.done} {
		w.moment(atNs)
	}
	w.number(int64(m.step))
	w.number(int64(m.route))
	w.number(map[bool]int64{true: 1}[m.failed])
}

// reader parses a message. After the first error all its methods return zero values.
type reader struct {
	b   []byte
	err error
}

var errTorn = errors.New("the message is torn, or of another version")

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.b = nil
}

func (r *reader) unsigned() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail("%w", errTorn)
		return 0
	}
	r.b = r.b[size:]
	return n
}

// number reads a number of at most most.
func (r *reader) number(most int64) int64 {
	n := r.unsigned()
	if n > uint64(most) {
		r.fail("a number is %d, and %d is the most", n, most)
		return 0
	}
	return int64(n)
}

func (r *reader) moment() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail("%w", errTorn)
		return 0
	}
	r.b = r.b[size:]
	if n > countMax || n < -countMax {
		r.fail("a moment is %d ns off", n)
		return 0
	}
	return n
}

func (r *reader) word() string {
	n := int(r.number(wordMax))
	if n > len(r.b) {
		r.fail("%w", errTorn)
	}
	if r.err != nil {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	if !utf8.ValidString(s) {
		r.fail("a text is none")
	}
	return s
}

// bins reads a histogram and adds it to h unless h is nil. It returns the number of samples and the
// greatest value; 0 without samples.
func (r *reader) bins(h *hdrhistogram.Histogram) (count, most int64) {
	atNs := int64(-1)
	for {
		gap := r.number(1 << 20)
		if gap == 0 || r.err != nil {
			return count, most
		}
		atNs += gap
		n := r.number(binMax)
		value := valueAt(atNs)
		if count += n; value > histMax || n == 0 || count > binMax {
			r.fail("bin %d of a histogram, with %d, is none", atNs, n)
			return 0, 0
		}
		most = value
		if h == nil {
			continue
		}
		if err := h.RecordValues(value, n); err != nil {
			r.fail("a histogram: %w", err)
		}
	}
}

// valueAt returns the lowest value of a bin.
func valueAt(bin int64) int64 {
	if bin < 2*halfBins {
		return bin
	}
	shift := bin/halfBins - 1
	if shift > 40 {
		return histMax + 1
	}
	return (bin%halfBins + halfBins) << shift
}

// end fails if bytes are left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes are too many", len(r.b))
	}
	return r.err
}

func (r *reader) kind(want byte) {
	if len(r.b) == 0 || r.b[0] != want {
		r.fail("%w", errTorn)
		return
	}
	r.b = r.b[1:]
}

// NewHistogram returns an empty histogram with the range and precision of those of a load.
func NewHistogram() *hdrhistogram.Histogram { return newHist() }

// Take adds a piece of a generator whose intervals before next were already taken. It returns the
// progress of that generator's load and the next interval to come. It adds response times and lags
// since the last piece to the two histograms. On an error nothing is changed.
func (l *Ledger) Take(b []byte, next int, response, lag *hdrhistogram.Histogram) (t Told, n int,
	err error) {
	if _, _, err := l.piece(b, next, nil, nil, false); err != nil {
		return Told{}, next, err
	}
	return l.piece(b, next, response, lag, true)
}

func (l *Ledger) piece(b []byte, next int, response, lag *hdrhistogram.Histogram, add bool) (Told,
	int, error) {
	r := &reader{b: b}
	r.kind(pieceKind)
	t := Told{Elapsed: time.Duration(r.number(countMax)), Window: r.number(1) == 1}
	for _, n := range t.Totals.counters() {
		*n = r.number(toldMax)
	}
	t.MemoryBytes = r.number(toldMax)
	t.Answers, _ = r.bins(response)
	_, t.LagMaxNs = r.bins(lag)
	next = r.intervals(l.total, next, add)
	return t, next, r.end()
}

// intervals adds the intervals of a message, which must be consecutive from next.
func (r *reader) intervals(b *book, next int, add bool) int {
	n := r.number(int64(len(b.intervals) - next))
	for range n {
		if pos := int(r.number(int64(len(b.intervals)))); r.err != nil || pos != next {
			r.fail("interval %d comes where %d is next", pos, next)
			return next
		}
		iv := &b.intervals[next]
		into := iv.response
		if !add {
			iv, into = &interval{}, nil
		}
		for _, c := range iv.counters() {
			*c += r.number(toldMax)
		}
		r.bins(into)
		next++
	}
	return next
}

// Close adds the books of a generator whose intervals before next were already taken. On an error
// nothing is changed. If look is not nil, Close first calls it with the generator's books as a
// ledger without a series; an error from look rejects the books.
func (l *Ledger) Close(b []byte, next int, part Part, look func(*Ledger) error) error {
	s := l.spec
	s.Part = part
	alone, err := ledgerOf(s, grid{})
	if err != nil {
		return err
	}
	if err := alone.books(b, l.total, next, false); err != nil {
		return err
	}
	p := &alone.peaks
	if n := alone.sums.threads; n < 1 || n > threadsMax || p.windowNs < 1 ||
		p.windowNs > int64(s.Window) {
		return fmt.Errorf("has books of %d threads and a window of %v", alone.sums.threads,
			time.Duration(p.windowNs))
	}
	if err := l.room(alone); err != nil {
		return err
	}
	if look != nil {
		if err := look(alone); err != nil {
			return err
		}
	}
	return l.books(b, l.total, next, true)
}

// room returns an error if adding the counters would overflow.
func (l *Ledger) room(o *Ledger) error {
	from := o.counters()
	for i, n := range l.counters() {
		if *from[i] > countMax-*n {
			return fmt.Errorf("has books with a number of %d, more than adds up", *from[i])
		}
	}
	return nil
}

// books adds a message to the ledger, and its intervals to the book named course.
func (l *Ledger) books(b []byte, course *book, next int, add bool) error {
	r := &reader{b: b}
	r.kind(booksKind)
	for _, n := range l.counters() {
		*n += r.number(countMax)
	}
	for _, n := range l.greatest() {
		*n = max(*n, r.number(countMax))
	}
	for _, s := range l.words() {
		word := r.word()
		*s = cmp.Or(*s, word)
	}
	l.hash = r.word()
	for _, h := range l.histograms() {
		r.bins(h)
	}
	most := int64(sampleMax / l.spec.Part.of())
	for range r.number(threadsMax) {
		t := r.sample(most)
		most -= int64(len(t.Due))
		l.singles = append(l.singles, t)
	}
	for y := range l.marks {
		for range r.number(keepMost * threadsMax) {
			l.marks[y] = append(l.marks[y], r.mark(len(l.names)))
			if r.err != nil {
				break
			}
		}
	}
	r.intervals(course, next, add)
	return r.end()
}

func (r *reader) sample(most int64) (t arrivalcheck.Times) {
	for range r.number(most) {
		due := r.moment()
		t.Due = append(t.Due, due)
		t.Left = append(t.Left, due+r.moment())
		t.Response = append(t.Response, r.number(countMax))
		if r.err != nil {
			break
		}
	}
	return t
}

func (r *reader) mark(routes int) (m mark) {
	m.k, m.draw = r.unsigned(), r.unsigned()
	for _, place := range []*int64{&m.due, &m.sent, &m.first, &m.done} {
		*place = r.moment()
	}
	m.step = int32(r.number(1 << 20))
	m.route = int32(r.number(int64(routes - 1)))
	m.failed = r.number(1) == 1
	return m
}
