package table

import (
	"slices"

	"prony/internal/print"
	"prony/internal/unit"
)

// wanted is a column that a suite may ask for beside the usual ones. Its metric is that of each
// load, of what answering cost, or of the whole trial.
type wanted struct {
	name, metric, heading, unit string
	of                          string // ofLoad, ofCost or ofTrial
	print                       func(float64) string
}

const (
	ofLoad  = "load"
	ofCost  = "cost"
	ofTrial = "trial"
)

var wantable = []wanted{
	{"mean", Mean, "mean", unit.Ns, ofLoad, nil},
	{"p90", "p90", "p90", unit.Ns, ofLoad, nil},
	{"max", Max, "max", unit.Ns, ofLoad, nil},
	{"requests", Requests, "requests", unit.One, ofLoad, unit.Whole},
	{"errors", ErrorShare, "errors", unit.One, ofLoad, unit.Percent},
	{"cpu", CPUUsed, "CPU", unit.One, ofCost, hundredths},
	{"threads", Threads, "threads", unit.One, ofCost, unit.Whole},
	{"listen", Listen, "listens", unit.Ns, ofTrial, unit.Duration},
	{"first", FirstResponse, "first answer", unit.Ns, ofTrial, unit.Duration},
	{"size", ArtifactSize, "size", unit.Octet, ofTrial, unit.Bytes},
	{"image", ImageSize, "image", unit.Octet, ofTrial, unit.Bytes},
}

// Columns are the names of all columns that can be asked for.
func Columns() (names []string) {
	for _, w := range wantable {
		names = append(names, w.name)
	}
	return names
}

// hundredths is how containers' processors are counted: 100 % is one.
func hundredths(x float64) string { return unit.PercentTo(x, 0) }

// wantedOf are the columns of a load that the suite asks for.
func (sc *Scenario) wantedOf(l LoadInfo, o Options) []spec {
	times := scaled(sc.latencyScale(l))
	return o.specs(ofLoad, l.Name, times, func(w wanted) Column {
		c := Column{l.Name + "/" + w.name, l.Title, l.Name, w.heading, w.unit, print.Right, Detail}
		if l.Model == closed && w.unit == unit.Ns {
			c.Heading += " closed"
		}
		return c
	})
}

// wantedCost are those of what answering the load cost.
func wantedCost(load string, o Options) []spec {
	return o.specs(ofCost, load, printer{}, func(w wanted) Column {
		group := "cost at " + load
		return Column{"cost/" + w.metric, group, "cost", w.heading, w.unit, print.Right, Detail}
	})
}

// wantedWhole are those of whole trials.
func wantedWhole(o Options) []spec {
	return o.specs(ofTrial, "", printer{}, func(w wanted) Column {
		group := "start"
		if w.unit == unit.Octet {
			group = "artifact"
		}
		return Column{group + "/" + w.name, group, "", w.heading, w.unit, print.Right, Detail}
	})
}

// specs are the wanted columns of a kind, over the metrics of a load; times prints those that have
// no form of their own.
func (o Options) specs(of, load string, times printer, column func(wanted) Column) (out []spec) {
	for _, w := range wantable {
		if w.of != of || !slices.Contains(o.Columns, w.name) {
			continue
		}
		p := times
		if w.print != nil {
			p = same(w.print)
		}
		out = append(out, spec{column: column(w), cell: func(t *Target, n *noteBook) Cell {
			return metricCell(t, n, load, w.metric, p)
		}})
	}
	return out
}
