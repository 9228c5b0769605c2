package tsdb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/httputil"
	"github.com/prometheus/prometheus/util/stats"
)

// promVersion is the version in status/buildinfo, by which Grafana detects a server's features.
const promVersion = "3.15.0" // of module version v0.315.0

const maxQueries = 4 // at once; others wait

func newEngine(o Options) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: silent, MaxSamples: o.QuerySize, Timeout: o.QueryTime, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: newParser(),
		// For subqueries without a step, such as rate(x[5s])[1m:]. The engine has no default.
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Second.Milliseconds() },
	})
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// read answers a path of the interface, or fails with a refusal.
type read func(*http.Request) (data any, notes annotations.Annotations, err error)

// Handler serves the reading part of Prometheus' HTTP API (its documentation, "HTTP API") below
// /api/v1/, without rules, targets and administration, which the store does not have. It also
// serves /-/ready and /-/healthy for monitors. Other paths are not found.
//
// It uses the engine and the database directly: Prometheus' own handler links its whole web server,
// notifier and rules.
func (s *Store) Handler() http.Handler {
	m := http.NewServeMux()
	fine := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	m.HandleFunc("/-/ready", fine)
	m.HandleFunc("/-/healthy", fine)
	turns := make(chan struct{}, maxQueries)
	add := func(methods []string, name string, f read) {
		h := inTurn(turns, httputil.CompressionHandler{Handler: answering(f)})
		for _, method := range methods {
			m.Handle(method+" /api/v1/"+name, h)
		}
		m.HandleFunc("OPTIONS /api/v1/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		})
	}
	both := []string{http.MethodGet, http.MethodPost}
	get := both[:1]
	add(both, "query", s.readQuery)
	add(both, "query_range", s.readRange)
	add(both, "query_exemplars", s.readExemplars)
	add(both, "format_query", parsed(func(e parser.Expr) any { return e.Pretty(0) }))
	add(both, "parse_query", parsed(tree))
	add(both, "labels", s.readLabels)
	add(get, "label/{name}/values", s.readValues)
	add(both, "series", s.readSeries)
	add(get, "metadata", s.readMetadata)
	add(get, "status/buildinfo", buildInfo)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path.Clean(r.URL.Path) { // otherwise the mux would redirect
			http.NotFound(w, r)
			return
		}
		m.ServeHTTP(w, r)
	})
}

// inTurn limits the number of concurrent queries.
func inTurn(turns chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			http.Error(w, "gave up waiting for other queries", http.StatusServiceUnavailable)
		}
	})
}

func (s *Store) readQuery(r *http.Request) (any, annotations.Annotations, error) {
	p := params{Request: r}
	at := p.time("time", s.o.Now())
	limit, timeout := p.limit(), p.duration("timeout", 0)
	return s.evaluate(&p, limit, timeout, Window{To: at})
}

func (s *Store) readRange(r *http.Request) (any, annotations.Annotations, error) {
	p := params{Request: r}
	limit := p.limit()
	from, to := p.must("start"), p.must("end")
	if p.err == nil && to.Before(from) {
		p.refuse("end", errors.New("end timestamp must not be before start time"))
	}
	step, timeout := p.duration("step", -1), p.duration("timeout", 0)
	if p.err == nil && step <= 0 {
		p.refuse("step", errors.New("zero or negative query resolution step widths are not "+
			"accepted. Try a positive integer"))
	}
	if p.err == nil && to.Sub(from)/step > maxPoints {
		p.err = badData(errors.New("exceeded maximum resolution of 11,000 points per timeseries. " +
			"Try decreasing the query resolution (?step=XX)"))
	}
	return s.evaluate(&p, limit, timeout, Window{From: from, To: to, Step: step})
}

// evaluated is the answer to a query.
type evaluated struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     any              `json:"result"`
	Stats      stats.QueryStats `json:"stats,omitempty"`
}

func (s *Store) evaluate(p *params, limit int, timeout time.Duration, w Window) (any,
	annotations.Annotations, error) {
	if p.err != nil {
		return nil, nil, p.err
	}
	lookback := p.duration("lookback_delta", 0)
	if p.err != nil {
		return nil, nil, badData(fmt.Errorf("error parsing lookback delta duration: %w",
			errors.Unwrap(errors.Unwrap(p.err))))
	}
	ctx, with := p.Context(), p.FormValue("stats")
	if p.FormValue("timeout") != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	o := promql.NewPrometheusQueryOpts(with == "all", lookback)
	q, err := s.ask(ctx, s.db, o, p.FormValue("query"), w)
	if err != nil {
		p.refuse("query", err)
		return nil, nil, p.err
	}
	defer q.Close() // after encoding the answer, because the engine reuses its memory
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, nil, res.Err
	}
	notes, cut := res.Warnings, false
	switch v := res.Value.(type) {
	case promql.Matrix:
		res.Value, cut = first(v, limit)
	case promql.Vector:
		res.Value, cut = first(v, limit)
	}
	if cut {
		notes = notes.Add(errTruncated)
	}
	out := evaluated{ResultType: res.Value.Type(), Result: shown(res.Value)}
	if with != "" {
		out.Stats = stats.NewQueryStats(q.Stats())
	}
	if with != "" && with != "true" && with != "all" {
		notes = notes.Add(fmt.Errorf("value %q for parameter \"stats\" is deprecated and will be "+
			"rejected in the next major release, use \"true\" or \"all\"", with))
	}
	text, err := encode(out)
	return text, notes, err
}

var errTruncated = errors.New("results truncated due to limit")

// first returns at most limit items of a list (0: all), and whether there are more.
func first[L ~[]T, T any](list L, limit int) (L, bool) {
	if limit == 0 || len(list) <= limit {
		return list, false
	}
	return list[:limit], true
}

func (s *Store) readExemplars(r *http.Request) (any, annotations.Annotations, error) {
	p := params{Request: r}
	from, to := p.stretch()
	if p.err == nil && to.Before(from) {
		p.err = badData(errors.New("end timestamp must not be before start timestamp"))
	}
	if p.err != nil {
		return nil, nil, p.err
	}
	expr, err := newParser().ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, nil, badData(err)
	}
	selectors := parser.ExtractSelectors(expr)
	if len(selectors) == 0 {
		return nil, nil, nil
	}
	q, err := s.db.ExemplarQuerier(r.Context())
	if err != nil {
		return nil, nil, err
	}
	found, err := q.Select(timestamp.FromTime(from), timestamp.FromTime(to), selectors...)
	return exemplarsOf(found), nil, err
}

func (s *Store) readMetadata(r *http.Request) (any, annotations.Annotations, error) {
	limit, err := wholeOr(r.FormValue("limit"), -1)
	if err != nil {
		return nil, nil, badData(errors.New("limit must be a number"))
	}
	if _, err := wholeOr(r.FormValue("limit_per_metric"), -1); err != nil { // one each
		return nil, nil, badData(errors.New("limit_per_metric must be a number"))
	}
	return s.families.list(r.FormValue("metric"), limit), nil, nil
}

func buildInfo(*http.Request) (any, annotations.Annotations, error) {
	info := map[string]string{"version": promVersion, "goVersion": runtime.Version()}
	for _, unknown := range []string{"revision", "branch", "buildUser", "buildDate"} {
		info[unknown] = ""
	}
	return info, nil, nil
}

// parsed answers with f of the parsed expression.
func parsed(f func(parser.Expr) any) read {
	return func(r *http.Request) (any, annotations.Annotations, error) {
		expr, err := newParser().ParseExpr(r.FormValue("query"))
		if err != nil {
			return nil, nil, badData(fmt.Errorf("invalid parameter \"query\": %w", err))
		}
		return f(expr), nil, nil
	}
}
