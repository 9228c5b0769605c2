// Package counters reads how many requests a dependency has received: from the statistics of a
// database, or from the metrics page of an upstream service. Compared with the service's answers,
// the count exposes a service that answers without calling its dependency.
//
// Open returns the Counter of a Place, and Read its present value. Only the difference of two
// readings is meaningful.
//
// Non-goals: this package counts nothing itself, does not query the service, whose numbers could be
// wrong, and does not judge (package verdict does).
package counters

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Wait limits one reading. A slower counter cannot be read during a load.
const Wait = time.Second

// Place is the address of a counter in manifests and projects: Postgres or Metrics.
type Place struct {
	// Postgres is postgres://USER:PASSWORD@HOST:PORT/DATABASE. The counter is the number of the
	// database's transactions, committed or not, or, with Statements, the calls in
	// pg_stat_statements.
	Postgres   string `yaml:"postgres"`
	Statements bool   `yaml:"statements"`
	// Metrics is the URL of a page in Prometheus' text format. Series is the name of a counter on
	// it, or a name with some labels: requests_total{path="/items"}. The value is the sum of all
	// series that match.
	Metrics string `yaml:"metrics"`
	Series  string `yaml:"series"`
}

// Wrong returns what is wrong with the keys of a counter, the key (".series"; empty: all) and a
// hint; an empty text: nothing.
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

// Counter is an open counter.
type Counter interface {
	// Read returns the present count. The error contains no password.
	Read(ctx context.Context) (float64, error)
	// What returns the counted unit in the plural: "transactions".
	What() string
	// Late returns the longest delay until a request is counted.
	Late() time.Duration
	Close()
}

// Open returns the counter of a place. It does not connect before the first reading.
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
	if err != nil { // a nil *page would be a non-nil Counter
		return nil, err
	}
	return page, nil
}
