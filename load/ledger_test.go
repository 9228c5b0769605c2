package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

// added runs a load with n generators of several threads, and adds each to a ledger.
func added(t *testing.T, s Spec, n, threads int) *Result {
	t.Helper()
	sum, err := NewLedger(s)
	if err != nil {
		t.Fatal(err)
	}
	response, lag, next := newHist(), newHist(), make([]int, n)
	all, _ := divided(t, s, n, threads, func(part *Spec) {
		i := part.Part.Index
		part.Detail, part.Observer = Pieces, ProgressFunc(func(p Progress) bool {
			if _, next[i], err = sum.Take(p.Piece, next[i], response, lag); err != nil {
				t.Error(err)
			}
			return true
		})
	})
	for i, r := range all {
		if next[i] == 0 {
			t.Error("nothing was streamed")
		}
		if err := sum.Close(r.Ledger.Books(), next[i], Part{i, n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	sum.Describe(EngineInfo{})
	return sum.Result()
}

// The sum of parts equals, to the bin, a single process with the same samples, in all results.
func TestPartsAreOneProcess(t *testing.T) {
	s := shared(record.Open)
	w := &world{serve: numbered}
	one := s
	one.Engine = w.engine
	want := good(t, w, one)
	for _, n := range []struct{ generators, threads int }{{2, 1}, {4, 1}, {2, 2}} {
		got := added(t, s, n.generators, n.threads)
		alike(t, fmt.Sprint(n), got, want, n.generators*n.threads)
	}
}

// alike compares two results except for fields that depend on who sent the load.
func alike(t *testing.T, what string, got, want *Result, threads int) {
	t.Helper()
	a, b := got.Load, want.Load
	for _, l := range []*record.Load{&a, &b} {
		l.Generator, l.WindowOpenedUnixNs, l.PunctualTime, l.ConnectTime = record.Gen{}, 0,
			record.Dist{},
			record.Dist{}
		l.Autocorrelation, l.Threads, l.Errors.Example = record.Autocorrelation{}, 0, ""
		l.InFlightMean, l.CarriedInMean, l.CarriedOutMean = 0, 0, 0
	}
	// Only the first requests, up to the moment that all threads reach, which is slightly less.
	p, q := a.ArrivalProcess, want.ArrivalProcess
	if p.Samples < q.Samples*98/100 || math.Abs(p.AndersonDarling/q.AndersonDarling-1) > 0.1 ||
		math.Abs(p.Dispersion10ms/q.Dispersion10ms-1) > 0.1 {
		t.Errorf("%s: process %+v, want %+v", what, p, q)
	}
	a.ArrivalProcess, b.ArrivalProcess = record.ArrivalProcess{}, record.ArrivalProcess{}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\n%+v\nwant\n%+v", what, a, b)
	}
	if got.Threads != threads {
		t.Errorf("%s: %d threads", what, got.Threads)
	}
	exactly(t, what+": requests under way", got.InFlightMean, want.InFlightMean)
	for i := range want.Intervals {
		if !got.Intervals[i].Response.Equals(want.Intervals[i].Response) {
			t.Errorf("%s: interval %d differs", what, i)
		}
	}
}

// Bins are those of the histogram's own library.
func TestBins(t *testing.T) {
	all, last := newHist(), int64(0)
	for at := int64(1); valueAt(at) <= histMax; at++ {
		if err := all.RecordValue(valueAt(at)); err != nil {
			t.Fatalf("bin %d: %v", at, err)
		}
		last = at
	}
	for i, n := range all.Export().Counts {
		if inside := i > 0 && int64(i) <= last; (n == 1) != inside || n > 1 {
			t.Fatalf("bin %d has %d of one value each of %d bins", i, n, last)
		}
	}
	if last != int64(slices.Index(all.Export().Counts[1:], 0)) || last < 30*halfBins {
		t.Errorf("the last bin is %d", last)
	}
	r := rand.New(rand.NewPCG(1, 2))
	h := newHist()
	for range 100_000 {
		recordNs(h, int64(r.ExpFloat64()*1e6))
	}
	recordNs(h, histMax)
	w := &writer{}
	w.bins(h)
	back := newHist()
	in := &reader{b: w.b}
	if n, _ := in.bins(back); n != 100_001 || in.end() != nil || !back.Equals(h) {
		t.Errorf("%d bins, %v", n, in.err)
	}
}

// No message, however damaged, does more than it may: on an error nothing is changed.
func TestTornMessages(t *testing.T) {
	s := shared(record.Open)
	s.Window = 500 * time.Millisecond
	var pieces [][]byte
	one := s
	one.Detail, one.Observer = Pieces, ProgressFunc(func(p Progress) bool {
		pieces = append(pieces, slices.Clone(p.Piece))
		return true
	})
	w := &world{serve: numbered}
	one.Engine = w.engine
	books := good(t, w, one).Ledger.Books()
	fresh := func() *Ledger {
		l, err := NewLedger(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	empty := fingerprint(fresh())
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 400 {
		l := fresh()
		take := func(b []byte) error {
			_, _, err := l.Take(b, 0, nil, nil)
			return err
		}
		whole := pieces[0]
		if n%2 == 1 {
			whole = books
			take = func(b []byte) error { return l.Close(b, len(l.total.intervals), Part{}, nil) }
		}
		b := slices.Clone(whole[:r.IntN(len(whole))])
		if n%4 > 1 {
			b = slices.Clone(whole)
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
		}
		if err := take(b); err != nil && fingerprint(l) != empty {
			t.Fatalf("message %d (seed 3, 4): refused (%v), and something was kept", n, err)
		}
	}
	told := len(fresh().total.intervals)
	for len(pieces) > 0 && told > 0 {
		if err := fresh().Close(books, told, Part{}, nil); err == nil {
			break
		}
		told--
	}
	if told == 0 {
		t.Fatal("no books were taken")
	}
	if err := fresh().Close(append(books, 0), told, Part{}, nil); err == nil {
		t.Error("books with a byte behind are taken")
	}
}

// A service's text of any bytes and length, such as a gRPC message, does not spoil the books.
func TestTextsOfServices(t *testing.T) {
	for _, text := range []string{"caf\xe9", strings.Repeat("ä", wordMax/2) + "ä", "x" +
		strings.Repeat("ä", wordMax)} {
		w := &writer{}
		w.word(text)
		r := &reader{b: w.b}
		if got := r.word(); r.end() != nil || len(got) < 4 || got[:3] != text[:3] {
			t.Errorf("%.10q... became %.10q..., %v", text, got, r.err)
		}
	}
}

// Messages of two generators are added only if the sums fit.
func TestMoreThanAddsUp(t *testing.T) {
	s := shared(record.Open)
	s.Window = 500 * time.Millisecond
	w := &world{serve: numbered}
	one := s
	one.Engine = w.engine
	own := good(t, w, one).Ledger
	own.total.sentInWin = countMax/2 + 1
	l, err := NewLedger(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(own.Books(), 0, Part{}, nil); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(l)
	if err := l.Close(own.Books(), 0, Part{}, nil); err == nil || fingerprint(l) != before {
		t.Errorf("twice what half of the most is and one: %v", err)
	}
}

// fingerprint returns all that a ledger contains.
func fingerprint(l *Ledger) string {
	var b strings.Builder
	for _, n := range append(l.counters(), l.greatest()...) {
		fmt.Fprint(&b, *n, " ")
	}
	hists := slices.Clone(l.histograms())
	for i := range l.total.intervals {
		hists = append(hists, l.total.intervals[i].response)
	}
	for _, h := range hists {
		fmt.Fprint(&b, h.TotalCount(), " ")
	}
	fmt.Fprint(&b, len(l.singles), len(l.marks[0]), l.pacing)
	return b.String()
}
