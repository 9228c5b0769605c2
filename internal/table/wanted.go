package table

import (
	"fmt"
	"slices"
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
	{"mean", Mean, "mean", unitNs, ofLoad, nil},
	{"p90", "p90", "p90", unitNs, ofLoad, nil},
	{"max", Max, "max", unitNs, ofLoad, nil},
	{"requests", Requests, "requests", unitOne, ofLoad, count},
	{"errors", ErrorShare, "errors", unitOne, ofLoad, Percent},
	{"cpu", CPUUsed, "CPU", unitOne, ofCost, hundredths},
	{"threads", Threads, "threads", unitOne, ofCost, count},
	{"listen", Listen, "listens", unitNs, ofTrial, Duration},
	{"first", FirstResponse, "first answer", unitNs, ofTrial, Duration},
	{"size", ArtifactSize, "size", unitBytes, ofTrial, Bytes},
	{"image", ImageSize, "image", unitBytes, ofTrial, Bytes},
}

// Columns are the names of all columns that can be asked for.
func Columns() (names []string) {
	for _, w := range wantable {
		names = append(names, w.name)
	}
	return names
}

func count(x float64) string { return Count(int64(x + 0.5)) }

// hundredths is how containers' processors are counted: 100 % is one.
func hundredths(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// wantedOf are the columns of a load that the suite asks for.
func (sc *Scenario) wantedOf(l LoadInfo, o Options) (out []spec) {
	print := sc.latencyScale(l).printer()
	for _, w := range o.wanted(ofLoad) {
		c := Column{l.Name + "/" + w.name, l.Title, l.Name, w.heading, w.unit, Right, Detail}
		if l.Model == closed && w.unit == unitNs {
			c.Heading += " closed"
		}
		p := print
		if w.print != nil {
			p = same(w.print)
		}
		out = append(out, spec{column: c, cell: func(t *Target, n *noteBook) Cell {
			return metricCell(t, n, l.Name, w.metric, p)
		}})
	}
	return out
}

// wantedCost are those of what answering the load cost.
func (sc *Scenario) wantedCost(load string, o Options) (out []spec) {
	for _, w := range o.wanted(ofCost) {
		c := Column{"cost/" + w.metric, "cost at " + load, "cost", w.heading, w.unit, Right, Detail}
		out = append(out, spec{column: c, cell: func(t *Target, n *noteBook) Cell {
			return metricCell(t, n, load, w.metric, same(w.print))
		}})
	}
	return out
}

// wantedWhole are those of whole trials.
func wantedWhole(o Options) (out []spec) {
	for _, w := range o.wanted(ofTrial) {
		group := "start"
		if w.unit == unitBytes {
			group = "artifact"
		}
		c := Column{group + "/" + w.name, group, "", w.heading, w.unit, Right, Detail}
		out = append(out, spec{column: c, cell: func(t *Target, n *noteBook) Cell {
			return metricCell(t, n, "", w.metric, same(w.print))
		}})
	}
	return out
}

func (o Options) wanted(of string) (out []wanted) {
	for _, w := range wantable {
		if w.of == of && slices.Contains(o.Columns, w.name) {
			out = append(out, w)
		}
	}
	return out
}
