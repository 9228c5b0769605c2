package table

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
)

// searched returns a trial whose only load is a search with this result; 0: its limit, at 300/s.
func searched(target string, block int, perS float64) record.Record {
	r := trial(target, block, 290)
	r.Loads[0].Name, r.Loads[0].Model = "users", record.Open
	r.Loads[0].Scheduled, r.Loads[0].RatePerS = 2900, 290
	s := &record.Search{SLO: "p99<50ms", RatePerS: perS, MetPerS: 300}
	if perS == 0 {
		s.Reason = "the objectives were never broken up to 300/s"
	}
	r.Loads[0].Search = s
	return r
}

func TestCapacityRanks(t *testing.T) {
	var records []record.Record
	for block := 1; block <= 4; block++ {
		records = append(records, searched("slow", block, 300+float64(block)),
			searched("quick", block, 600+float64(block*block)))
	}
	study := analyze(records, Options{Baseline: "slow"})
	sc := study.Scenarios[0]
	if sc.Ranking.Metric != metric.Capacity || sc.Ranking.Load != "users" ||
		!reflect.DeepEqual(sc.Ranking.Tiers, [][]string{{"quick"}, {"slow"}}) {
		t.Errorf("ranking %+v", sc.Ranking)
	}
	tab := only(t, study.Sheet())
	if !slices.ContainsFunc(tab.Columns, func(c Column) bool {
		return c.Group.Heading() == "users (capacity, p99<50ms)" && c.Heading() == "req/s"
	}) {
		t.Errorf("the columns are %+v", tab.Columns)
	}
	c := find(t, tab, "quick", "users/capacity")
	if c.Value < 601 || c.Value > 616 || c.Interval.State != Known || c.Interval.Lo > c.Value {
		t.Errorf("the capacity is %+v", c)
	}
	if c := find(t, tab, "quick", "users/ratio"); fmt.Sprintf("%.1f", c.Value) != "2.0" {
		t.Errorf("the ratio is %+v", c)
	}
	for _, m := range sc.Targets[0].Metrics {
		if m.Load == "users" && (m.Name == "p99" || m.Name == metric.Throughput) {
			t.Errorf("%s of the deciding step is a result", m.Name)
		}
	}
}

// TestCapacityAtLeast checks that one search that reached its limit makes the result a lower bound.
func TestCapacityAtLeast(t *testing.T) {
	records := []record.Record{searched("a", 1, 310), searched("a", 2, 0), searched("a", 3, 320)}
	c := find(t, only(t, sheetOf(records, Options{})), "a", "users/capacity")
	said := notes(only(t, sheetOf(records, Options{})), c)
	if c.State != Withheld || c.AtLeast != 300 || c.Text() != "at least 300" || c.Grade != "" ||
		!strings.Contains(said, "never broken up to 300/s") {
		t.Errorf("the cell is %+v, and is said: %s", c, said)
	}
}
