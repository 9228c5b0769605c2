package suite

import (
	"slices"
	"strings"

	"prony.example/internal/base/strictyaml"
	"prony.example/record"
	"prony.example/record/slo"
)

// load checks one load against the earlier ones.
func (c *checker) load(at string, l *Load, earlier []Load) {
	if l.Model == record.Closed {
		c.closed(at, l)
	}
	if l.Model == record.Open {
		c.open(at, l)
	}
	c.searched(at, l)
	if l.Rate.Of != "" && l.Model == record.Open {
		c.share(at+".rate", l, earlier)
	}
	if l.Slow.Clients == 0 && l.Slow != (Slow{}) {
		c.Wrong(at+".slow", "such as clients: 1000", "slow has no clients")
	}
}

func (c *checker) closed(at string, l *Load) {
	switch {
	case !l.Rate.IsZero():
		c.Wrong(at+".rate", "make it open, or take the rate out",
			"closed load %q has a rate; its rate is whatever comes of its connections", l.Name)
	case l.Arrivals != "":
		c.Wrong(at+".arrivals", "make it open, or take them out",
			"closed load %q has arrivals; it sends when it was answered", l.Name)
	case l.Trace != "":
		c.Wrong(at+".trace", "make it open, or take the trace out",
			"closed load %q has a trace; it sends when it was answered", l.Name)
	case l.Most != 0:
		c.Wrong(at+".maxConnections", "make it open, or take it out",
			"closed load %q has maxConnections; it has as many as it keeps busy", l.Name)
	case !l.Users.IsZero() && l.Users.Max() > float64(l.Connections):
		c.Wrong(at+".connections", "leave them out",
			"%d connections are too few for up to %g users, each with one of its own",
			l.Connections, l.Users.Max())
	}
}

func (c *checker) open(at string, l *Load) {
	if l.Most != 0 && l.Most < l.Connections {
		c.Wrong(at+".maxConnections", "raise it, or leave it out",
			"open load %q begins with %d connections, more than %d", l.Name, l.Connections, l.Most)
	}
	if !l.Users.IsZero() {
		c.Wrong(at+".users", "make it closed, or take them out",
			"open load %q has users; its requests come on a schedule", l.Name)
	}
	if l.Think != (Think{}) {
		c.Wrong(at+".think", "make it closed, or take it out",
			"open load %q has a think time; its requests come on a schedule", l.Name)
	}
	replay := l.Arrivals == Replay
	switch {
	case replay && l.Trace == "":
		c.Wrong(at+".arrivals", "name its file with trace", "replay lacks a trace")
	case replay && !l.Rate.IsZero():
		c.Wrong(at+".rate", "take it out", "a replay has no rate but its trace's")
	case replay:
	case l.Trace != "":
		c.Wrong(at+".trace", `say "arrivals: replay"`, "the trace is not replayed")
	case l.Rate.IsZero():
		c.Wrong(at, `such as "rate: 20000/s" or "rate: 50% of peak"`,
			"open load %q has no rate", l.Name)
	}
}

// searched checks what only a search has, and what it cannot have.
func (c *checker) searched(at string, l *Load) {
	if l.Model != record.Capacity {
		if l.SLO != "" {
			c.Wrong(at+".slo", "make its model capacity, or take slo out",
				"%s load %q has objectives", l.Model, l.Name)
		}
		if l.Budget != 0 {
			c.Wrong(at+".budget", "make its model capacity, or take the budget out",
				"%s load %q has a budget; measure is how long it is", l.Model, l.Name)
		}
		return
	}
	objectives, err := slo.Parse(l.SLO)
	switch {
	case l.SLO == "":
		c.Wrong(at, "such as slo: 'p99<50ms'", "capacity load %q has no objectives", l.Name)
	case err != nil:
		c.Wrong(at+".slo", "", "%v", err)
	case slices.ContainsFunc(objectives, slo.Objective.IsThroughput):
		c.Wrong(at+".slo", "leave it out", "throughput is what a capacity load looks for")
	case l.Budget < searchWindows*l.Measure:
		c.Wrong(at+".budget", "raise it, or shorten measure", "a search of %v is too short for "+
			"steps of %v: want %d of them at least", l.Budget, l.Measure, searchWindows)
	}
	if !l.Rate.IsZero() || l.Arrivals != "" || l.Trace != "" {
		c.Wrong(at, "take them out", "capacity load %q has a rate, arrivals or a trace; it looks "+
			"for its rate, with Poisson arrivals", l.Name)
	}
	if !l.Users.IsZero() || l.Think != (Think{}) || l.Most != 0 || l.Slow.Clients > 0 {
		c.Wrong(at, "take them out", "capacity load %q has users, a think time, maxConnections "+
			"or slow clients, which a search does not have", l.Name)
	}
}

// searchWindows is the least budget of a search, in windows: what its warm-up, a bracket and one
// block of steps take.
const searchWindows = 15

func (c *checker) share(at string, l *Load, earlier []Load) {
	if l.Rate.Of == CapacityLoad {
		return
	}
	var closed []string
	for _, e := range earlier {
		switch {
		case e.Name == l.Rate.Of && e.Model != record.Open && e.Model != record.Capacity:
			return // closed, or of no model, which was found already
		case e.Name == l.Rate.Of:
			c.Wrong(at, "", "rate is a share of %q, which is not closed: what it delivers was "+
				"asked for", l.Rate.Of)
			return
		case e.Model == record.Closed:
			closed = append(closed, e.Name)
		}
	}
	hint := "put a closed load before it"
	if len(closed) > 0 {
		hint = "earlier closed loads are " + strings.Join(closed, ", ")
	}
	c.Wrong(at, strictyaml.Meant(l.Rate.Of, closed, hint),
		"rate is a share of %q, which is no earlier load", l.Rate.Of)
}
