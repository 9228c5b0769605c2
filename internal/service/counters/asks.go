// Package counters reads how often somebody was asked: a database by its own statistics, an
// upstream by the page of metrics that it serves. Held against a service's answers, it unmasks one
// that answers without asking.
//
// The way of the data: Open makes the Counter of a Place, Read gives what was counted so far. Only
// the difference of two readings means anything.
//
// Non-goals: nothing is counted here, the service itself is not asked (it would tell what it
// likes), and nothing is judged (package verdict does).
package counters

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Wait bounds one reading: whoever takes longer cannot be read beside a load.
const Wait = time.Second

// Place is where a counter is, as manifests and projects say it: Postgres or Metrics.
type Place struct {
	// Postgres is postgres://USER:PASSWORD@HOST:PORT/DATABASE. Counted are the database's
	// transactions, committed or not, or, with Statements, what pg_stat_statements saw of it.
	Postgres   string `yaml:"postgres"`
	Statements bool   `yaml:"statements"`
	// Metrics is the URL of a page in Prometheus' text format, Series the name of a counter there,
	// or a name with some of its labels, as requests_total{path="/items"}. Counted is the sum of
	// all that have them.
	Metrics string `yaml:"metrics"`
	Series  string `yaml:"series"`
}

// Wrong says what is wrong with the keys of a counter, at which of them, as ".series" (empty: all),
// and what to do about it; an empty text: nothing.
func (p Place) Wrong(name string) (keyPath, hint, text string) {
	switch {
	case (p.Postgres == "") == (p.Metrics == ""):
		return "", "keep one", "the counter " + name + " must have either postgres or metrics"
	case p.Metrics != "" && p.Series == "":
		return ".metrics", "such as series: requests_total",
			"series is missing: it selects the counted series of the page"
	case p.Series != "" && p.Metrics == "":
		return ".series", "remove the key", "series is allowed only with metrics"
	case p.Statements && p.Postgres == "":
		return ".statements", "remove the key", "statements is allowed only with postgres"
	}
	return "", "", ""
}

// Counter is what can be read.
type Counter interface {
	// Read gives the asks so far. The error says verb, object and cause, and no password.
	Read(ctx context.Context) (float64, error)
	// What says what is counted, in the plural: "transactions".
	What() string
	// Late is for how long at most an ask may not be counted yet.
	Late() time.Duration
	Close()
}

// Open makes the counter of a place; nobody is spoken to before the first reading.
func Open(p Place) (Counter, error) {
	if p.Postgres != "" {
		u, err := url.Parse(p.Postgres)
		if err != nil || u.Hostname() == "" || u.User.Username() == "" {
			return nil, fmt.Errorf("read the counter: the address must have the form " +
				"postgres://USER:PASSWORD@HOST:PORT/DATABASE")
		}
		return &postgres{url: u, statements: p.Statements}, nil
	}
	page, err := openPage(p.Metrics, p.Series)
	if err != nil { // a nil one would be a Counter
		return nil, err
	}
	return page, nil
}
