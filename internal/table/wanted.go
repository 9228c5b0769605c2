package table

import (
	"slices"

	"prony/internal/metric"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/unit"
)

// wantedOf are the columns of a load that the suite asks for.
func (sc *Scenario) wantedOf(l LoadInfo, o Options) []spec {
	times := scaled(sc.latencyScale(l))
	return o.specs(metric.OfLoad, l.Name, times, func(m metric.Metric) Column {
		c := Column{l.Name + "/" + m.Column.Name, l.Title, l.Name, m.Column.Heading, m.Unit,
			print.Right, Detail}
		if l.Model == result.Closed && m.Unit == unit.Ns {
			c.Heading += " closed"
		}
		return c
	})
}

// wantedCost are those of what answering the load cost.
func wantedCost(load string, o Options) []spec {
	return o.specs(metric.OfCost, load, printer{}, func(m metric.Metric) Column {
		group := "cost at " + load
		return Column{"cost/" + m.Name, group, "cost", m.Column.Heading, m.Unit, print.Right,
			Detail}
	})
}

// wantedWhole are those of whole trials.
func wantedWhole(o Options) []spec {
	return o.specs(metric.OfTrial, "", printer{}, func(m metric.Metric) Column {
		group := "start"
		if m.Unit == unit.Octet {
			group = "artifact"
		}
		return Column{group + "/" + m.Column.Name, group, "", m.Column.Heading, m.Unit,
			print.Right, Detail}
	})
}

// specs are the wanted columns of a place, over the metrics of a load; times prints those that have
// no form of their own.
func (o Options) specs(place metric.Place, load string, times printer,
	column func(metric.Metric) Column,
) (out []spec) {
	for _, m := range metric.Columns() {
		if m.Column.Place != place || !slices.Contains(o.Columns, m.Column.Name) {
			continue
		}
		p := times
		if m.Column.Print != nil {
			p = same(m.Column.Print)
		}
		out = append(out, shows(column(m), load, m.Name, p))
	}
	return out
}
