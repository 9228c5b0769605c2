package server

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// compare holds two runs, or two targets of one, against each other; with a limit it judges, too.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := only(q, "a", "b", "metric", "control", "unlike", "limit"); err != nil {
		return err
	}
	if q.Get("a") == "" {
		return refuse(http.StatusBadRequest, "a: want a run, or RUN:TARGET")
	}
	ids := []string{run(q.Get("a"))}
	if q.Get("b") != "" {
		ids = append(ids, run(q.Get("b")))
	}
	return s.present(w, r, "application/json", "compare "+q.Encode(), ids,
		func(w io.Writer) error { return s.printComparison(w, q) })
}

// run cuts RUN:TARGET; no identifier holds a colon.
func run(address string) string {
	id, _, _ := strings.Cut(address, ":")
	return id
}

// list are the words of a parameter, with commas between them.
func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

func (s *Server) printComparison(w io.Writer, q url.Values) error {
	from, err := s.side(q.Get("a"))
	if err != nil {
		return err
	}
	to := from
	if run(q.Get("b")) == run(q.Get("a")) {
		_, to.Target, _ = strings.Cut(q.Get("b"), ":")
	} else if q.Get("b") != "" {
		if to, err = s.side(q.Get("b")); err != nil {
			return err
		}
	} else if from.Target != "" {
		return refuse(http.StatusBadRequest, "b: compare %s with what? name a second one, or the "+
			"run alone", q.Get("a"))
	}
	metrics := list(q.Get("metric"))
	of := func(metrics []string) (compare.Comparison, error) {
		c, err := compare.Compare(from, to, compare.Options{Metrics: metrics,
			Control: q.Get("control"), Unlike: q.Get("unlike") == "true",
			Refused: "to compare them all the same, under a banner that says so: unlike=true"})
		if err != nil {
			return c, refuse(http.StatusUnprocessableEntity, "%v", err)
		}
		return c, nil
	}
	if q.Get("limit") == "" {
		c, err := of(metrics)
		if err != nil {
			return err
		}
		return compare.JSON(w, c)
	}
	limits, err := compare.ParseLimits(metrics, strings.Split(q.Get("limit"), ","))
	if err != nil {
		return refuse(http.StatusBadRequest, "limit: %v", err)
	}
	all, err := of([]string{"all"})
	if err != nil {
		return err
	}
	judged, err := compare.Judged(all, limits)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	c, err := of(judged)
	if err != nil {
		return err
	}
	g, err := compare.Judge(c, limits, 0)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	return compare.GateJSON(w, g)
}

func (s *Server) side(address string) (side compare.Side, err error) {
	id, target, _ := strings.Cut(address, ":")
	r, err := s.Runs.Read(id)
	if err != nil {
		return side, err
	}
	if len(r.Records) == 0 {
		return side, refuse(http.StatusUnprocessableEntity, "read run %s: it has no records; was "+
			"it ended before its first trial?", id)
	}
	return compare.Side{Dir: id, Head: r.Head, Records: record.Compared(r.Records),
		Target: target, Reproduce: runs.Reproduce(r.Head)}, nil
}

// maxHistory bounds the runs of a history, of each of which all records are read.
const maxHistory = 200

// trend is the history of a suite's runs, the newest of them where there are many.
func (s *Server) trend(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := only(q, "suite", "metric", "target", "machine"); err != nil {
		return err
	}
	x, err := s.Runs.List(r.Context())
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range x.Entries {
		if (q.Get("suite") == "" || e.Suite == q.Get("suite")) && len(ids) < maxHistory &&
			(q.Get("machine") == "" || e.Machine.Key == q.Get("machine")) && e.Blocks > 0 {
			ids = append(ids, e.ID)
		}
	}
	o := history.Options{Metrics: list(q.Get("metric")), Targets: list(q.Get("target"))}
	return s.present(w, r, "application/json", "trend "+q.Encode(), ids, func(w io.Writer) error {
		var runList [][]history.Series
		for _, id := range slices.Backward(ids) { // the oldest first
			run, err := s.Runs.Read(id)
			if errors.Is(err, runs.ErrNone) {
				continue // it has just been removed
			}
			if err != nil {
				return err
			}
			runList = append(runList, history.Of(history.Run{Head: run.Head,
				Records: record.Compared(run.Records)}, run.Study(table.Options{}), o))
		}
		return history.JSON(w, history.Join(runList, o))
	})
}
