package metrics

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// promVersion is what status/buildinfo answers: Grafana asks it for what a server can do.
const promVersion = "3.15.0" // of module version v0.315.0

const maxQueries = 4 // at once; the others wait

func newEngine(o Options) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: o.Log, MaxSamples: o.QuerySize, Timeout: o.QueryTime, LookbackDelta: o.Lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: newParser(),
		// Of a subquery without a step, such as rate(x[5s])[1m:]. The engine has no default.
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Second.Milliseconds() },
	})
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// reads are the paths of Prometheus' interface that only read, and need nothing that the store has
// not: no rules, no targets, no administration, nothing that writes.
var reads = regexp.MustCompile(`^/api/v1/(query|query_range|query_exemplars|format_query|` +
	`parse_query|labels|label/[^/]+/values|series|metadata|status/buildinfo)$`)

// Handler serves Prometheus' own HTTP interface, as far as it reads, below /api/v1/, and /-/ready
// and /-/healthy, which monitors ask. Everything else is not found.
func (s *Store) Handler() http.Handler {
	r := route.New()
	s.api().Register(r)
	inner := http.StripPrefix("/api/v1", r)
	turns := make(chan struct{}, maxQueries)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/-/ready" || r.URL.Path == "/-/healthy":
			w.WriteHeader(http.StatusOK)
			return
		case !reads.MatchString(r.URL.Path):
			http.NotFound(w, r)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			// The interface looks whether a page of another origin may read it, by an expression
			// that it wants to be given. None may.
			r.Header.Del("Origin")
			inner.ServeHTTP(w, r)
		case <-r.Context().Done():
			http.Error(w, "gave up waiting for other queries", http.StatusServiceUnavailable)
		}
	})
}

// undescribed lets the interface's own description, which is not among reads, have no paths:
// writing all of it as YAML takes 0.2 s of a core and 25 MB at each start.
var undescribed = []string{"/-"}

func (s *Store) api() *v1.API {
	return v1.NewAPI(
		s.engine, s.db, nil, nil, s.db,
		nil, func(context.Context) v1.TargetRetriever { return knower{s.families} }, nil,
		func() config.Config { return config.DefaultConfig }, nil, v1.GlobalURLOptions{},
		func(h http.HandlerFunc) http.HandlerFunc { return h },
		nil, s.dir, false, false, 0, s.o.Log, nil,
		0, 0, 0, false, nil, nil,
		&v1.PrometheusVersion{Version: promVersion, GoVersion: runtime.Version()},
		nil, nil, prometheus.NewRegistry(), prometheus.NewRegistry(), nil,
		false, nil, false, false, false, false, s.o.Lookback, false, false, nil, nil,
		v1.OpenAPIOptions{IncludePaths: undescribed}, newParser(),
	)
}

// knower answers the interface's question for targets with one that knows all families: this is
// where Prometheus looks for metadata.
type knower struct{ families *families }

func (k knower) TargetsActive() map[string][]*scrape.Target {
	c := config.DefaultScrapeConfig
	t := scrape.NewTarget(labels.EmptyLabels(), &c, nil, nil)
	t.SetMetadataStore(k.families)
	return map[string][]*scrape.Target{"prony": {t}}
}

func (knower) TargetsDropped() map[string][]*scrape.Target { return nil }
func (knower) TargetsDroppedCounts() map[string]int        { return nil }

func (knower) ScrapePoolConfig(string) (*config.ScrapeConfig, error) {
	return nil, errors.New("nothing here is configured")
}
