package suite

import (
	"cmp"
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
		c.Wrong(keyPath+".rate", "set model: open, or remove rate",
			"closed load %q has a rate, but the rate of a closed load results from its "+
				"connections", l.Name)
	case l.Arrivals != "":
		c.Wrong(keyPath+".arrivals", "set model: open, or remove arrivals",
			"closed load %q has arrivals, but a closed load sends a request when the last "+
				"response is complete", l.Name)
	case l.Trace != "":
		c.Wrong(keyPath+".trace", "set model: open, or remove trace",
			"closed load %q has a trace, but a closed load sends a request when the last "+
				"response is complete", l.Name)
	case l.Most != 0:
		c.Wrong(keyPath+".maxConnections", "set model: open, or remove maxConnections",
			"closed load %q has maxConnections, but a closed load always uses all its "+
				"connections", l.Name)
	case !l.Users.IsZero() && l.Users.Max() > float64(l.Connections):
		c.Wrong(keyPath+".connections", "remove connections",
			"%d connections are too few for up to %g users: each user needs its own connection",
			l.Connections, l.Users.Max())
	}
}

func (c *checker) open(keyPath string, l *Load) {
	if !l.Users.IsZero() {
		c.Wrong(keyPath+".users", "set model: closed, or remove users",
			"open load %q has users, but only closed loads can have users", l.Name)
	}
	if l.Think != (Think{}) {
		c.Wrong(keyPath+".think", "set model: closed, or remove think",
			"open load %q has a think time, but only closed loads can have a think time", l.Name)
	}
	replay := l.Arrivals == Replay
	switch {
	case replay && l.Trace == "":
		c.Wrong(keyPath+".arrivals", "add the key trace with the file's "+
			"name", "arrivals: replay needs a trace")
	case replay && !l.Rate.IsZero():
		c.Wrong(keyPath+".rate", "remove rate", "a load with arrivals: replay cannot have a "+
			"rate: its trace defines the rate")
	case replay:
	case l.Trace != "":
		c.Wrong(keyPath+".trace", `write "arrivals: replay"`, "trace requires arrivals: replay")
	case l.Rate.IsZero():
		c.Wrong(keyPath, `add a rate such as "rate: 20000/s" or "rate: 50% of peak"`,
			"open load %q has no rate", l.Name)
	}
}

// searched checks the keys that only a capacity load has, and those that it cannot have.
func (c *checker) searched(keyPath string, l *Load) {
	if l.Model != record.Capacity {
		if l.SLO != "" {
			c.Wrong(keyPath+".slo", "set model: capacity, or remove slo",
				"%s load %q has an slo, but only capacity loads can have an slo", l.Model, l.Name)
		}
		if l.Budget != 0 {
			c.Wrong(keyPath+".budget", "set model: capacity, or remove budget",
				"%s load %q has a budget, but only capacity loads can have a budget; measure "+
					"sets the length of this load", l.Model, l.Name)
		}
		return
	}
	objectives, err := slo.Parse(l.SLO)
	switch {
	case l.SLO == "":
		c.Wrong(keyPath, "add objectives such as slo: "+
			"'p99<50ms'", "capacity load %q has no objectives", l.Name)
	case err != nil:
		c.Wrong(keyPath+".slo", "", "%v", err)
	case slices.ContainsFunc(objectives, slo.Objective.IsThroughput):
		c.Wrong(keyPath+".slo", "remove the throughput "+
			"objective", "a capacity load searches for the throughput, so "+
			"throughput cannot be an objective")
	case l.Budget < searchWindows*l.Measure:
		c.Wrong(
			keyPath+".budget",
			"raise budget, or shorten measure",
			"a search of %v is too short for steps of %v: it needs time for at least %d steps",
			l.Budget,
			l.Measure,
			searchWindows,
		)
	}
	if !l.Rate.IsZero() || l.Arrivals != "" || l.Trace != "" {
		c.Wrong(
			keyPath,
			"remove rate, arrivals and trace",
			"capacity load %q has a rate, arrivals or a trace, but the search chooses its rates "+
				"and uses Poisson arrivals",
			l.Name,
		)
	}
	if !l.Users.IsZero() || l.Think != (Think{}) || l.Most != 0 {
		c.Wrong(
			keyPath,
			"remove users, think and maxConnections",
			"capacity load %q has users, a think time or maxConnections, but a search cannot "+
				"have these keys",
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
				"rate is a share of %q, but the rate can only be a share of a closed load's "+
					"throughput",
				l.Rate.Of,
			)
			return
		case e.Model == record.Closed:
			closed = append(closed, e.Name)
		}
	}
	hint := "put a closed load before this load"
	if len(closed) > 0 {
		hint = "earlier closed loads are " + strings.Join(closed, ", ")
	}
	c.Wrong(keyPath, strictyaml.Meant(l.Rate.Of, closed, hint),
		"rate is a share of %q, but no earlier load has this name", l.Rate.Of)
}

// objects checks that the routes of objectives are requests of every scenario.
func (c *checker) objects(keyPath, text string, scenarios []Scenario) {
	objectives, _ := slo.Parse(text) // searched reports the error
	for _, sc := range scenarios {
		var names []string
		for _, r := range sc.Requests {
			if r.Setup == "" {
				names = append(names, cmp.Or(r.Name, r.Request))
			}
		}
		if len(names) == 1 {
			names = nil
		}
		modes := slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(name, "{"+mode+"}") // a target's route has its mode
		})
		if err := slo.Routes(objectives, names); err != nil && !modes {
			c.Wrong(keyPath, "", "scenario %s: %v", sc.Name, err)
		}
	}
}
