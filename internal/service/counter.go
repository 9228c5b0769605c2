package service

import (
	"maps"
	"slices"
	"strconv"

	"prony/internal/asks"
)

// counterPlaceholders are those of a counter's URLs beside ports of processes.
var counterPlaceholders = []string{"host", "port"}

// CounterAt is a target's counter for where the processes of a trial listen, each by its name, the
// one that takes the requests also without. In its URLs {host}, {port} and {PROCESS.port} stand for
// what a trial decides.
func CounterAt(c asks.Place, host string, ports map[string]int) (asks.Place, error) {
	values := map[string]string{"host": host, "port": strconv.Itoa(ports[""])}
	for name, port := range ports {
		values[name+".port"] = strconv.Itoa(port)
	}
	var err error
	if c.Postgres, err = expand(c.Postgres, values); err == nil {
		c.Metrics, err = expand(c.Metrics, values)
	}
	return c, err
}

func (d document) checkCounters(at string, s *Service, t Target) {
	for _, name := range slices.Sorted(maps.Keys(t.Counters)) {
		c, here := t.Counters[name], at+".counters."+name
		if at, hint, text := c.Wrong(name); text != "" {
			d.Wrong(here+at, hint, "%s", text)
		}
		d.placeholders(here, s, []string{c.Postgres, c.Metrics}, counterPlaceholders)
	}
}
