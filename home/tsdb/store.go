// Package tsdb stores what services tell in numbers while they are measured, and answers PromQL
// about it, during the run and afterwards. It is Prometheus' own database, engine, translator and
// scraper, held within bounds, because what a service sends is nobody's promise, behind what reads
// of Prometheus' HTTP interface.
//
//	OTLP ── ConsumeMetrics ─┐                       ┌─ Handler ──── Grafana, promtool
//	pages ── Scrape ────────┼─► gate ─► TSDB ─► PromQL
//	lab ── ConsumeOwn ──────┘   (bounds, counts)    └─ Instant, Range, List ── prony query
//
// Non-goals: nothing here receives OTLP, judges a number, or is part of a measurement: losing the
// store loses no result.
package tsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/compression"
	"go.opentelemetry.io/collector/processor"

	"prony.example/internal/base/clock"
)

// Reasons for which a sample is taken in but not kept, as Stats.Dropped counts them.
const (
	DropSeries         = "series"         // it would begin a series beyond Options.MaxSeries
	DropFull           = "full"           // Options.MaxSamples are stored
	DropFuture         = "future"         // later than maxAhead from now
	DropOld            = "old"            // earlier than maxAge, or the database's bound
	DropOrder          = "order"          // out of order where that is not allowed
	DropDuplicate      = "duplicate"      // another value for the same moment
	DropLabels         = "labels"         // its labels are longer than maxLabelBytes
	DropInvalid        = "invalid"        // e.g. a histogram whose buckets do not add up
	DropDelta          = "delta"          // a delta that does not follow on the ones before it
	DropUntranslatable = "untranslatable" // whole metrics: no name, or no temporality
	DropExemplar       = "exemplar"       // exemplars only, their samples are kept
	DropCommit         = "commit"         // the disk did not take them
)

// Bounds of what is not an option.
const (
	maxAhead = time.Minute     // of a timestamp before now: all clocks are one machine's
	maxAge   = time.Hour       // of a timestamp
	lookback = 5 * time.Minute // for which a sample holds: Prometheus' own

	maxLabelBytes = 4 << 10 // of one series, names and values together
	maxExemplars  = 10_000  // kept in memory
	stripes       = 1 << 11 // of the series' hash table; Prometheus' 1 << 14 are for millions
)

// silent logs nothing: what goes wrong is an error or a count.
var silent = promslog.NewNopLogger()

// Options of a store; what is zero is as said.
type Options struct {
	MaxSeries  int64         // 50,000
	MaxSamples int64         // 200,000,000, about 2 GB on the disk
	OutOfOrder time.Duration // within which samples of a series may come in any order: 10 min
	QueryTime  time.Duration // that a query may take: 30 s
	QuerySize  int           // samples that a query may hold at once: 20,000,000

	Now func() time.Time // clock.Wall
}

func (o Options) filled() Options {
	o.MaxSeries = cmp.Or(o.MaxSeries, 50_000)
	o.MaxSamples = cmp.Or(o.MaxSamples, 200_000_000)
	o.OutOfOrder = cmp.Or(o.OutOfOrder, 10*time.Minute)
	o.QueryTime = cmp.Or(o.QueryTime, 30*time.Second)
	o.QuerySize = cmp.Or(o.QuerySize, 20_000_000)
	if o.Now == nil {
		o.Now = clock.Wall
	}
	return o
}

// Store is a database of series. Its methods may be called from many goroutines, but none after
// Close.
type Store struct {
	o        Options
	dir      string
	db       *tsdb.DB
	engine   *promql.Engine
	families *families
	deltas   processor.Metrics
	series   *seriesBound
	clean    func() error // of a read-only store's copy

	kept atomic.Int64

	mu      sync.Mutex
	dropped map[string]int64

	deltaMu      sync.Mutex // the processor takes one call at a time
	deltaReached int64      // points that the call under way led on

	pages pages

	closing sync.Once
	closed  error
}

// Stats counts what a store has taken in since it was opened. Of values for the same moment of the
// same series in one message the last one stays, and all count as kept.
type Stats struct {
	Series  int64            `json:"series"`  // known now, those of an earlier opening too
	Samples int64            `json:"samples"` // kept; a classic histogram's point is several
	Dropped map[string]int64 `json:"dropped"` // samples, by reason
}

// Open opens the database in a folder, which is made if it is missing, for this process alone. What
// another process left there, even by a crash, is read again; a torn end is cut off.
func Open(dir string, o Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	s := &Store{o: o.filled(), dir: dir, dropped: map[string]int64{}}
	s.series = &seriesBound{max: s.o.MaxSeries}
	if err := s.openDB(dir); err != nil {
		return nil, err
	}
	s.series.on.Store(true)
	var err error
	if s.families, err = openFamilies(dir); err == nil {
		err = s.openDeltas()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open metrics: %w", err), s.db.Close())
	}
	return s, nil
}

func (s *Store) openDB(dir string) error {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = 0 // a run's folder is deleted by its owner
	o.WALCompression = compression.Snappy
	o.StripeSize = stripes
	o.EnableExemplarStorage, o.MaxExemplars = true, maxExemplars
	o.OutOfOrderTimeWindow = s.o.OutOfOrder.Milliseconds()
	o.FloatChunkEncoding = chunkenc.EncXOR
	o.SeriesLifecycleCallback = s.series
	db, err := tsdb.Open(dir, silent, nil, o, tsdb.NewDBStats())
	if err != nil {
		return fmt.Errorf("open metrics in %s: %w; another process may have opened it", dir, err)
	}
	s.db, s.engine = db, newEngine(s.o)
	return nil
}

// EndTrial ends all series that carry the label prony_trial with this id: Prometheus' staleness
// marker is appended to each, so that a query about the next trial does not see the last values of
// this one until the lookback has passed.
func (s *Store) EndTrial(now time.Time, id string) error {
	to := now.UnixMilli()
	q, err := s.db.Querier(to-lookback.Milliseconds(), to)
	if err != nil {
		return fmt.Errorf("end the series of trial %s: %w", id, err)
	}
	defer q.Close()
	g := s.gate(context.Background())
	g.quiet = true
	stale := math.Float64frombits(value.StaleNaN)
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchEqual, LabelTrial, id))
	for set.Next() {
		if _, err = g.Append(0, set.At().Labels(), 0, to, stale, nil, nil,
			storage.AOptions{}); err != nil {
			break
		}
	}
	if err = errors.Join(err, set.Err()); err != nil {
		return errors.Join(fmt.Errorf("end the series of trial %s: %w", id, err), g.Rollback())
	}
	return g.Commit()
}

// Stats returns the counts up to now.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	dropped := maps.Clone(s.dropped)
	s.mu.Unlock()
	return Stats{Series: s.series.now.Load(), Samples: s.kept.Load(), Dropped: dropped}
}

// Bounds returns the times of the first and the last sample; ok is false when there is none.
func (s *Store) Bounds() (from, to time.Time, ok bool) {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, b := range s.db.Blocks() {
		low, high = min(low, b.MinTime()), max(high, b.MaxTime()-1)
	}
	if h := s.db.Head(); h.NumSeries() > 0 && h.MaxTime() >= h.MinTime() {
		low, high = min(low, h.MinTime(), h.MinOOOTime()), max(high, h.MaxTime())
	}
	if low > high {
		return time.Time{}, time.Time{}, false
	}
	return time.UnixMilli(low).UTC(), time.UnixMilli(high).UTC(), true
}

// Close ends scraping and closes the database; everything appended is then on the disk. A second
// call does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	s.StopScrape()
	var errs []error
	if s.deltas != nil {
		errs = append(errs, s.deltas.Shutdown(context.Background()))
	}
	errs = append(errs, s.families.close(), s.db.Close())
	if s.clean != nil {
		errs = append(errs, s.clean())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close metrics in %s: %w", s.dir, err)
	}
	return nil
}
