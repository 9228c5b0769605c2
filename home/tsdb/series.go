package tsdb

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// selection holds the parameters of requests for label names, label values and series.
type selection struct {
	storage.Querier
	from, to int64
	limit    int
	sets     [][]*labels.Matcher
}

// choose reads the parameters of a selection. refused is the format of errors about matchers.
func (s *Store) choose(r *http.Request, refused string) (*selection, error) {
	p := params{Request: r}
	limit := p.limit()
	from, to := p.stretch()
	if p.err != nil {
		return nil, p.err
	}
	sets, err := newParser().ParseMetricSelectors(r.Form["match[]"])
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			err = errors.New("match[] must contain at least one non-empty matcher")
		}
	}
	if err != nil {
		return nil, badData(fmt.Errorf(refused, err))
	}
	c := &selection{from: timestamp.FromTime(from), to: timestamp.FromTime(to), limit: limit,
		sets: sets}
	c.Querier, err = s.db.Querier(c.from, c.to)
	return c, err
}

// hint returns one more than the limit, to detect that there are more; 0: all.
func (c *selection) hint() int {
	if c.limit > 0 {
		return c.limit + 1
	}
	return 0
}

// union returns the sorted values of a label, or all label names for "", in series that match any
// set of matchers of the request, or in all series.
func (s *Store) union(r *http.Request, label string) (any, annotations.Annotations, error) {
	c, err := s.choose(r, "%w")
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	all := []string{}
	var notes annotations.Annotations
	if len(c.sets) == 0 {
		c.sets = [][]*labels.Matcher{nil}
	}
	for _, set := range c.sets {
		hints := &storage.LabelHints{Limit: c.hint()}
		ask := func() ([]string, annotations.Annotations, error) {
			if label == "" {
				return c.LabelNames(r.Context(), hints, set...)
			}
			return c.LabelValues(r.Context(), label, hints, set...)
		}
		some, more, err := ask()
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
		notes.Merge(more)
	}
	slices.Sort(all)
	return listed(slices.Compact(all), c.limit, notes)
}

// listed encodes the answer at once, because the list belongs to the database until that is closed.
func listed[T any](all []T, limit int, notes annotations.Annotations) (any,
	annotations.Annotations, error) {
	all, cut := first(all, limit)
	if cut {
		notes.Add(errTruncated)
	}
	text, err := encode(all)
	return text, notes, err
}

func (s *Store) readLabels(r *http.Request) (any, annotations.Annotations, error) {
	return s.union(r, "")
}

func (s *Store) readValues(r *http.Request) (any, annotations.Annotations, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return nil, nil, badData(fmt.Errorf("invalid label name: %q", name))
	}
	return s.union(r, name)
}

func (s *Store) readSeries(r *http.Request) (any, annotations.Annotations, error) {
	if err := r.ParseForm(); err != nil {
		return nil, nil, badData(fmt.Errorf("error parsing form values: %w", err))
	}
	if len(r.Form["match[]"]) == 0 {
		return nil, nil, badData(errors.New("no match[] parameter provided"))
	}
	c, err := s.choose(r, "invalid parameter \"match[]\": %w")
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	// There is no function series: the word tells the database that no samples are needed.
	hints := &storage.SelectHints{Start: c.from, End: c.to, Func: "series", Limit: c.hint()}
	var sets []storage.SeriesSet
	for _, set := range c.sets {
		sets = append(sets, c.Select(r.Context(), len(c.sets) > 1, hints, set...))
	}
	set := storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
	all := []labels.Labels{}
	for set.Next() && r.Context().Err() == nil && (c.limit == 0 || len(all) <= c.limit) {
		all = append(all, set.At().Labels())
	}
	if err := errors.Join(set.Err(), r.Context().Err()); err != nil {
		return nil, nil, err
	}
	return listed(all, c.limit, set.Warnings())
}
