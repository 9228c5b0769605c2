// Package tsdb stores metrics of services during a run and answers PromQL on them, during the run
// and afterwards. It uses Prometheus' database, engine, translator and scraper, with limits on all
// input, because any service may send anything, and serves the reading part of Prometheus' HTTP
// API.
//
//	OTLP ── ConsumeMetrics ─┐                       ┌─ Handler ──── Grafana, promtool
//	pages ── Scrape ────────┼─► gate ─► TSDB ─► PromQL
//	lab ── ConsumeOwn ──────┘   (bounds, counts)    └─ Instant, Range, List ── prony query
//
// Non-goals: it does not receive OTLP or judge values, and measurements do not depend on it: losing
// the store loses no result.
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

// Reasons for dropping a received sample, as in Stats.Dropped.
const (
	DropSeries         = "series"         // it would start a series beyond Options.MaxSeries
	DropFull           = "full"           // Options.MaxSamples are stored
	DropFuture         = "future"         // later than maxAhead from now
	DropOld            = "old"            // earlier than maxAge, or the database's bound
	DropOrder          = "order"          // out of order beyond the allowed time
	DropDuplicate      = "duplicate"      // another value for the same moment
	DropLabels         = "labels"         // its labels are longer than maxLabelBytes
	DropInvalid        = "invalid"        // for example a histogram with inconsistent buckets
	DropDelta          = "delta"          // a delta that does not follow the previous one
	DropUntranslatable = "untranslatable" // complete metrics: no name, or no temporality
	DropExemplar       = "exemplar"       // only exemplars; their samples are kept
	DropCommit         = "commit"         // the disk refused them
)

// Limits that are not options.
const (
	maxAhead = time.Minute     // of a timestamp in the future: all clocks are of one machine
	maxAge   = time.Hour       // of a timestamp
	lookback = 5 * time.Minute // validity of a sample: Prometheus' own

	maxLabelBytes = 4 << 10 // of one series, names and values together
	maxExemplars  = 10_000  // kept in memory
	stripes       = 1 << 11 // of the series' hash table; Prometheus' 1 << 14 are for millions
)

// silent logs nothing: failures are errors or counts.
var silent = promslog.NewNopLogger()

// Options configure a store; zero fields have the defaults given here.
type Options struct {
	MaxSeries  int64         // 50,000
	MaxSamples int64         // 200,000,000, about 2 GB on the disk
	OutOfOrder time.Duration // allowed delay of samples of a series: 10 min
	QueryTime  time.Duration // limit for a query: 30 s
	QuerySize  int           // samples in memory for a query: 20,000,000

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

// Store is a database of series. It is safe for concurrent use until Close.
type Store struct {
	o        Options
	dir      string
	db       *tsdb.DB
	engine   *promql.Engine
	families *families
	deltas   processor.Metrics
	series   *seriesBound
	clean    func() error // removes a read-only store's copy

	kept atomic.Int64

	mu      sync.Mutex
	dropped map[string]int64

	deltaMu      sync.Mutex // the processor accepts one call at a time
	deltaReached int64      // points that the present call has passed on

	pages pages

	closing sync.Once
	closed  error
}

// Stats counts what a store has received since it was opened. Of several values for one moment of a
// series in one message only the last is stored, but all count as kept.
type Stats struct {
	Series  int64            `json:"series"`  // known now, including stored ones
	Samples int64            `json:"samples"` // kept; a point of a classic histogram has several
	Dropped map[string]int64 `json:"dropped"` // samples, by reason
}

// Open opens the database in a folder for this process, and creates the folder if it is missing. It
// reads data of earlier processes, also after a crash, and cuts off an incomplete end.
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
	o.RetentionDuration = 0 // the owner of a run's folder deletes it
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

// EndTrial ends all series whose label prony_trial is id: it appends Prometheus' staleness marker
// to each, because a query about the next trial would otherwise return the last values of this one
// during the lookback.
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

// Stats returns the present counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	dropped := maps.Clone(s.dropped)
	s.mu.Unlock()
	return Stats{Series: s.series.now.Load(), Samples: s.kept.Load(), Dropped: dropped}
}

// Bounds returns the times of the first and the last sample; ok is false if there is none.
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

// Close ends scraping and closes the database, with all data on disk. Later calls do nothing.
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
