package tsdb

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

var errSeries = errors.New("the store has reached its limit of series")

// seriesBound limits the number of series. The database calls it before it creates one.
type seriesBound struct {
	max int64
	now atomic.Int64
	on  atomic.Bool // off while the database reads stored data
}

func (b *seriesBound) PreCreation(labels.Labels) error {
	if b.on.Load() && b.now.Load() >= b.max {
		return errSeries
	}
	return nil
}

func (b *seriesBound) PostCreation(labels.Labels) { b.now.Add(1) }

func (b *seriesBound) PostDeletion(gone map[chunks.HeadSeriesRef]labels.Labels) {
	b.now.Add(-int64(len(gone)))
}

// gate filters samples before the database: a sample beyond a limit is counted and dropped without
// an error, so that a bad point does not affect the sender's others. It is one transaction of one
// goroutine.
type gate struct {
	storage.AppenderV2
	s         *Store
	quiet     bool // own samples of Prony are not counted as received
	low, high int64
	full      bool

	kept    int64
	dropped map[string]int64
}

func (s *Store) gate(ctx context.Context) *gate {
	now := s.o.Now()
	return &gate{
		AppenderV2: s.db.AppenderV2(ctx), s: s,
		low: now.Add(-maxAge).UnixMilli(), high: now.Add(maxAhead).UnixMilli(),
		full: s.kept.Load() >= s.o.MaxSamples, dropped: map[string]int64{},
	}
}

func (g *gate) drop(why string, n int) { g.dropped[why] += int64(n) }

// Append implements storage.AppenderV2. It returns no error for bad input.
func (g *gate) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (
	storage.SeriesRef, error) {
	if why := g.refuse(ls, t); why != "" {
		g.drop(why, 1)
		return 0, nil
	}
	ls = withArea(ls)
	ref, err := g.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
	var partial *storage.AppendPartialError
	if err != nil && !errors.As(err, &partial) {
		g.drop(reason(err), 1)
		return 0, nil
	}
	if partial != nil {
		g.drop(DropExemplar, len(partial.ExemplarErrors))
	}
	g.kept++
	g.s.families.learn(o)
	return ref, nil
}

func (g *gate) refuse(ls labels.Labels, t int64) string {
	switch {
	case g.full:
		return DropFull
	case t > g.high:
		return DropFuture
	case t < g.low:
		return DropOld
	case ls.ByteSize() > maxLabelBytes:
		return DropLabels
	}
	return ""
}

func reason(err error) string {
	switch {
	case errors.Is(err, errSeries):
		return DropSeries
	case errors.Is(err, storage.ErrOutOfOrderSample):
		return DropOrder
	case errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds):
		return DropOld
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		return DropDuplicate
	}
	return DropInvalid
}

// Commit stores the transaction and then counts it.
func (g *gate) Commit() error {
	err := g.AppenderV2.Commit()
	if err != nil {
		g.drop(DropCommit, int(g.kept))
		g.kept = 0
	}
	if g.quiet {
		return err
	}
	g.s.kept.Add(g.kept)
	g.s.count(g.dropped)
	return err
}

func (s *Store) count(dropped map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for why, n := range dropped {
		s.dropped[why] += n
	}
}

// areas maps values of OpenTelemetry's attribute jvm.memory.type (semantic conventions, "JVM
// metrics") to those of the label "area" of Micrometer and the JMX exporter.
var areas = map[string]string{"heap": "heap", "non_heap": "nonheap"}

// withArea adds Micrometer's label to OpenTelemetry's series of JVM memory, so that one query works
// for both.
func withArea(ls labels.Labels) labels.Labels {
	if !strings.HasPrefix(ls.Get(labels.MetricName), "jvm_memory_") || ls.Has("area") {
		return ls
	}
	area, ok := areas[ls.Get("jvm_memory_type")]
	if !ok {
		return ls
	}
	return labels.NewBuilder(ls).Set("area", area).Labels()
}

// appendable provides gates to the scraper.
type appendable struct{ s *Store }

func (a appendable) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return a.s.gate(ctx)
}
