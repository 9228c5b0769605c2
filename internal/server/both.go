package server

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// compare compares two runs, or two targets of one run. With a limit it also judges, like a gate.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) error {
	return s.compared(w, r, "application/json", "compare",
		func(w io.Writer, c compare.Comparison, g *compare.Gate) error {
			if g != nil {
				return compare.GateJSON(w, *g)
			}
			return compare.JSON(w, c)
		})
}

// comparePage returns the same page as prony compare --format html.
func (s *Server) comparePage(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", reportPolicy)
	return s.compared(w, r, "text/html; charset=utf-8", "compare page",
		func(w io.Writer, c compare.Comparison, g *compare.Gate) error {
			return report.Compare(w, c, report.HTMLOptions{Gate: g})
		})
}

// compared responds with a comparison in one of its formats; the gate is nil without a limit.
func (s *Server) compared(w http.ResponseWriter, r *http.Request, kind, form string,
	write func(io.Writer, compare.Comparison, *compare.Gate) error) error {
	q := r.URL.Query()
	if err := only(q, "a", "b", "metric", "control", "allowMismatch", "limit"); err != nil {
		return err
	}
	if q.Get("a") == "" {
		return refuse(http.StatusBadRequest, "a: the parameter must be a run, or RUN:TARGET")
	}
	ids := []string{run(q.Get("a"))}
	if q.Get("b") != "" {
		ids = append(ids, run(q.Get("b")))
	}
	return s.present(w, r, kind, form+" "+q.Encode(), ids, func(w io.Writer) error {
		c, g, err := s.comparison(q)
		if err != nil {
			return err
		}
		return write(w, c, g)
	})
}

// run returns the run of RUN:TARGET; identifiers have no colon.
func run(address string) string {
	id, _, _ := strings.Cut(address, ":")
	return id
}

// list splits a parameter at its commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

func (s *Server) comparison(q url.Values) (c compare.Comparison, g *compare.Gate, err error) {
	from, to, err := s.sides(q)
	if err != nil {
		return c, nil, err
	}
	metrics := list(q.Get("metric"))
	value := func(metrics []string) (compare.Comparison, error) {
		c, err := compare.Compare(from, to, compare.Options{Metrics: metrics,
			Control: q.Get("control"), Unlike: q.Get("allowMismatch") == "true",
			Refused: `to compare them with a warning, choose "Compare anyway" (in the API: ` +
				`allowMismatch=true)`})
		if unlike := (*compare.UnlikeError)(nil); errors.As(err, &unlike) {
			return c, refuse(http.StatusConflict, "%v", err)
		}
		if err != nil {
			return c, refuse(http.StatusUnprocessableEntity, "%v", err)
		}
		return c, nil
	}
	if q.Get("limit") == "" {
		c, err = value(metrics)
		return c, nil, err
	}
	limits, err := compare.ParseLimits(metrics, strings.Split(q.Get("limit"), ","))
	if err != nil {
		return c, nil, refuse(http.StatusBadRequest, "limit: %v", err)
	}
	all, err := value([]string{"all"})
	if err != nil {
		return c, nil, err
	}
	judged, err := compare.Judged(all, limits)
	if err != nil {
		return c, nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	if c, err = value(judged); err != nil {
		return c, nil, err
	}
	gate, err := compare.Judge(c, limits, 0)
	if err != nil {
		return c, nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	return gate.Comparison, &gate, nil
}

// sides reads the runs of a request.
func (s *Server) sides(q url.Values) (from, to compare.Side, err error) {
	if from, err = s.side(q.Get("a")); err != nil {
		return from, to, err
	}
	switch b := q.Get("b"); {
	case run(b) == run(q.Get("a")):
		to = from
		_, to.Target, _ = strings.Cut(b, ":")
	case b != "":
		to, err = s.side(b)
	case from.Target != "":
		err = refuse(http.StatusBadRequest, "b: compare %s: the parameter must be a second row, "+
			"or only the run", q.Get("a"))
	default:
		to = from
	}
	return from, to, err
}

func (s *Server) side(address string) (side compare.Side, err error) {
	id, target, _ := strings.Cut(address, ":")
	r, err := s.Runs.Read(id)
	if err != nil {
		return side, err
	}
	if len(r.Records) == 0 {
		return side, refuse(http.StatusUnprocessableEntity, "read run %s: the run has no "+
			"records; it may have ended before its first trial", id)
	}
	side = r.Side(target)
	side.Dir = id
	return side, nil
}

// maxHistory bounds the runs of a history, because all records of each run are read.
const maxHistory = 200

// trend responds with the history of a suite's runs, of the newest ones if there are many.
func (s *Server) trend(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := only(q, "suite", "metric", "target", "machine"); err != nil {
		return err
	}
	entries, err := s.Runs.Brief(r.Context())
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range entries {
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
				continue // it was just removed
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
