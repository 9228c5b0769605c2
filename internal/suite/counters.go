package suite

import (
	"fmt"
	"slices"

	"prony/internal/config"
)

// asksMost is how often one request may ask.
const asksMost = 10_000

// counterParameters are its keys.
var counterParameters = []parameter{
	{key: "project.targets.NAME.counters", max: 16, form: processForm, such: "database",
		about: "what the target asks and who counts it, by the names that `asks` of a request " +
			"has; see [what a service asks](../project.md#a-service-that-answers-without-asking)"},
	{key: "project.targets.NAME.counters.NAME.postgres",
		about: "a PostgreSQL, as `postgres://USER:PASSWORD@127.0.0.1:{db.port}/NAME`: its " +
			"transactions are counted"},
	{key: "project.targets.NAME.counters.NAME.statements",
		about: "its statements instead, as `pg_stat_statements` has them"},
	{key: "project.targets.NAME.counters.NAME.metrics",
		about: "a page in Prometheus' text format, as `http://127.0.0.1:{stock.port}/metrics`"},
	{key: "project.targets.NAME.counters.NAME.series",
		about: "the counter on that page, as `requests_total` or `requests_total{path=\"/a\"}`; " +
			"the sum of all that have these labels"},
}

// counters checks those of a target.
func (c *checker) counters(at string, s Source) {
	for _, name := range sortedNames(s.Counters) {
		k, here := s.Counters[name], step(at+".counters", name)
		if at, hint, text := k.Wrong(name); text != "" {
			c.Wrong(here+at, hint, "%s", text)
		}
	}
}

// asks checks how often a request asks.
func (c *checker) asks(at string, r *Request) {
	for _, name := range sortedNames(r.Asks) {
		if n := r.Asks[name]; n < 1 || n > asksMost {
			c.Wrong(step(at+".asks", name), "", "it asks %s %d times, outside 1 to %d", name, n,
				asksMost)
		}
	}
	if len(r.Asks) > 0 && r.Setup != "" {
		c.Wrong(at+".asks", "take it out", "what a setup asks is in no window")
	}
}

// counted refuses an experiment whose requests ask what no target has a counter of: nothing would
// be held by it.
func (p *Project) counted(s *Suite, doc *config.Document) error {
	var names []string
	for _, t := range p.Targets {
		names = append(names, sortedNames(t.Counters)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, sc := range s.Scenarios {
		for j, r := range sc.Requests {
			for _, name := range sortedNames(r.Asks) {
				if slices.Contains(names, name) {
					continue
				}
				return doc.Problem(fmt.Sprintf("scenarios[%d].requests[%d].asks", i, j),
					"no target has a counter "+name, config.Meant(name, names, "add it to "+
						"counters of the targets that ask it"))
			}
		}
	}
	return nil
}
