package suite

import (
	"slices"
	"strings"

	"prony.example/internal/base/strictyaml"
	"prony.example/record"
	"prony.example/record/slo"
)

// load checks one load against the earlier ones.
func (c *checker) load(keyPath string, l *Load, earlier []Load) {
	if l.Model == record.Closed {
		c.closed(keyPath, l)
	}
	if l.Model == record.Open {
		c.open(keyPath, l)
	}
	c.searched(keyPath, l)
	if l.Rate.Of != "" && l.Model == record.Open {
		c.share(keyPath+".rate", l, earlier)
	}
}

func (c *checker) closed(keyPath string, l *Load) {
	switch {
	case !l.Rate.IsZero():
		c.Wrong(keyPath+".rate", "make it open, or take the rate out",
			"closed load %q has a rate; its rate is whatever comes of its connections", l.Name)
	case l.Arrivals != "":
		c.Wrong(keyPath+".arrivals", "make it open, or take them out",
			"closed load %q has arrivals; it sends when it was answered", l.Name)
	case l.Trace != "":
		c.Wrong(keyPath+".trace", "make it open, or take the trace out",
			"closed load %q has a trace; it sends when it was answered", l.Name)
	case l.Most != 0:
		c.Wrong(keyPath+".maxConnections", "make it open, or take it out",
			"closed load %q has maxConnections; it has as many as it keeps busy", l.Name)
	case !l.Users.IsZero() && l.Users.Max() > float64(l.Connections):
		c.Wrong(keyPath+".connections", "leave them out",
			"%d connections are too few for up to %g users, each with one of its own",
			l.Connections, l.Users.Max())
	}
}

func (c *checker) open(keyPath string, l *Load) {
	if l.Most != 0 && l.Most < l.Connections {
		c.Wrong(keyPath+".maxConnections", "raise it, or leave it out",
			"open load %q begins with %d connections, more than %d", l.Name, l.Connections, l.Most)
	}
	if !l.Users.IsZero() {
		c.Wrong(keyPath+".users", "make it closed, or take them out",
			"open load %q has users; its requests come on a schedule", l.Name)
	}
	if l.Think != (Think{}) {
		c.Wrong(keyPath+".think", "make it closed, or take it out",
			"open load %q has a think time; its requests come on a schedule", l.Name)
	}
	replay := l.Arrivals == Replay
	switch {
	case replay && l.Trace == "":
		c.Wrong(keyPath+".arrivals", "name its file with trace", "replay lacks a trace")
	case replay && !l.Rate.IsZero():
		c.Wrong(keyPath+".rate", "take it out", "a replay has no rate but its trace's")
	case replay:
	case l.Trace != "":
		c.Wrong(keyPath+".trace", `say "arrivals: replay"`, "the trace is not replayed")
	case l.Rate.IsZero():
		c.Wrong(keyPath, `such as "rate: 20000/s" or "rate: 50% of peak"`,
			"open load %q has no rate", l.Name)
	}
}

// searched checks the keys that only a capacity load has, and those that it cannot have.
func (c *checker) searched(keyPath string, l *Load) {
	if l.Model != record.Capacity {
		if l.SLO != "" {
			c.Wrong(keyPath+".slo", "make its model capacity, or take slo out",
				"%s load %q has objectives", l.Model, l.Name)
		}
		if l.Budget != 0 {
			c.Wrong(keyPath+".budget", "make its model capacity, or take the budget out",
				"%s load %q has a budget; measure is how long it is", l.Model, l.Name)
		}
		return
	}
	objectives, err := slo.Parse(l.SLO)
	switch {
	case l.SLO == "":
		c.Wrong(keyPath, "such as slo: 'p99<50ms'", "capacity load %q has no objectives", l.Name)
	case err != nil:
		c.Wrong(keyPath+".slo", "", "%v", err)
	case slices.ContainsFunc(objectives, slo.Objective.IsThroughput):
		c.Wrong(keyPath+".slo", "leave it out", "throughput is what a capacity load looks for")
	case l.Budget < searchWindows*l.Measure:
		c.Wrong(
			keyPath+".budget",
			"raise it, or shorten measure",
			"a search of %v is too short for "+
				"steps of %v: want %d of them at least",
			l.Budget,
			l.Measure,
			searchWindows,
		)
	}
	if !l.Rate.IsZero() || l.Arrivals != "" || l.Trace != "" {
		c.Wrong(
			keyPath,
			"take them out",
			"capacity load %q has a rate, arrivals or a trace; it looks "+
				"for its rate, with Poisson arrivals",
			l.Name,
		)
	}
	if !l.Users.IsZero() || l.Think != (Think{}) || l.Most != 0 {
		c.Wrong(
			keyPath,
			"take them out",
			"capacity load %q has users, a think time or maxConnections, "+
				"which a search does not have",
			l.Name,
		)
	}
}

// searchWindows is the minimum budget of a search, in windows: its warm-up, a bracket and one block
// of steps.
const searchWindows = 15

func (c *checker) share(keyPath string, l *Load, earlier []Load) {
	if l.Rate.Of == CapacityLoad {
		return
	}
	var closed []string
	for _, e := range earlier {
		switch {
		case e.Name == l.Rate.Of && e.Model != record.Open && e.Model != record.Capacity:
			return // closed, or without a model, which was already reported
		case e.Name == l.Rate.Of:
			c.Wrong(
				keyPath,
				"",
				"rate is a share of %q, which is not closed: what it delivers was "+
					"asked for",
				l.Rate.Of,
			)
			return
		case e.Model == record.Closed:
			closed = append(closed, e.Name)
		}
	}
	hint := "put a closed load before it"
	if len(closed) > 0 {
		hint = "earlier closed loads are " + strings.Join(closed, ", ")
	}
	c.Wrong(keyPath, strictyaml.Meant(l.Rate.Of, closed, hint),
		"rate is a share of %q, which is no earlier load", l.Rate.Of)
}
