package boards

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Row is what Check found for one panel or annotation.
type Row struct {
	Board, Panel string
	Queries      int
	WithData     int      // queries that found data
	Problems     []string // refused queries, missing variables
	Optional     bool     // a panel of profiles, which Send does not send
}

// Complete reports whether each query of the panel found data.
func (r Row) Complete() bool { return r.WithData == r.Queries && len(r.Problems) == 0 }

// through provides the values of variables from Grafana.
type through struct {
	ctx context.Context
	g   Grafana
}

func (t through) Values(uid, selector, label string) ([]string, error) {
	return t.g.values(t.ctx, uid, selector, label)
}

// Check puts each query of the dashboards to Grafana, over the time window before now, and returns
// a row for each panel. Its error is that of Grafana itself; refused queries are in the rows.
func Check(ctx context.Context, g Grafana, boards []Board, window time.Duration, now time.Time) (
	[]Row, error) {
	var rows []Row
	for _, b := range boards {
		values, _, problems := b.Resolve(through{ctx, g})
		for _, q := range b.Queries() {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			i := slices.IndexFunc(rows, func(r Row) bool {
				return r.Board == b.Title && r.Panel == q.Panel
			})
			if i < 0 {
				i = len(rows)
				rows = append(rows, Row{Board: b.Title, Panel: q.Panel,
					Optional: q.In == Selector})
			}
			rows[i].add(ctx, g, q, values, now.Add(-window), now)
		}
		for _, problem := range problems {
			rows = append(rows, Row{Board: b.Title, Panel: "variables",
				Problems: []string{problem}})
		}
	}
	return rows, nil
}

func (r *Row) add(ctx context.Context, g Grafana, q Query, values map[string]string,
	from, to time.Time) {
	r.Queries++
	text, unknown := Fill(q.Text, values)
	if len(unknown) > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("no value of %v", unknown))
		return
	}
	q.Text = text
	switch n, err := g.Count(ctx, q, from, to); {
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
	case n > 0:
		r.WithData++
	}
}
