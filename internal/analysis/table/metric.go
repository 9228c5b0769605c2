package table

import (
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Exact is the assumption of a metric without noise, in addition to those of package stats.
const Exact = "exact"

// summarize fills Metrics and Curves. A load's metrics come from the trials in which that load is
// not INVALID; metrics of the whole trial, such as its cost, depend on the load that ranks.
func (t *Target) summarize(sc *Scenario, confidence float64) {
	if len(t.Used) == 0 {
		return
	}
	for _, info := range sc.Loads {
		if slices.Contains(loadNames(t.Trials), info.Name) {
			t.summarizeLoad(info, t.offers(info.Name), confidence)
		}
	}
	anchor := sc.anchor().Name
	var full []offer
	for _, r := range t.Used {
		if grade := LoadGrade(r, anchor); good(grade) {
			full = append(full, offer{r, nil, t.blocks(r), grade})
		}
	}
	for _, q := range metric.All {
		switch {
		case q.Trial == nil:
		case len(full) > 0:
			t.Metrics = append(t.Metrics, across(q, full, confidence))
		default:
			t.Metrics = append(t.Metrics, lostMetric(q, t.lost(anchor)))
		}
	}
}

func (t *Target) summarizeLoad(info LoadInfo, offered []offer, confidence float64) {
	add := func(m Metric) {
		m.Load, m.Model = info.Name, info.Model
		t.Metrics = append(t.Metrics, m)
	}
	for _, q := range metric.All {
		if q.Trial != nil || !info.has(q) {
			continue
		}
		switch {
		case q.Watched:
			if len(offered) == 0 {
				continue
			}
			if m := across(q, offered, confidence); len(m.Points) > 0 {
				add(m)
			}
		case len(offered) == 0:
			add(lostMetric(q, t.lost(info.Name)))
		case q.Quantile == 0:
			add(across(q, offered, confidence))
		}
	}
	if len(offered) > 0 && info.Model != record.Capacity {
		ms, curve := percentiles(info, offered, confidence, t)
		t.Metrics = append(t.Metrics, ms...)
		t.Curves = append(t.Curves, curve)
	}
}

// has reports whether such a load has a metric. For a search it excludes the throughput and latency
// of the deciding step, which follow from its rate and the objectives.
func (l LoadInfo) has(q metric.Metric) bool {
	if l.Model == record.Capacity {
		return q.Model == l.Model || q.Watched ||
			slices.Contains([]string{metric.CPU, metric.RSS}, q.Name)
	}
	return q.Model == "" || q.Model == l.Model
}

// lostMetric returns a withheld metric that no trial is left for.
func lostMetric(q metric.Metric, why Note) Metric {
	m := Metric{Name: q.Name, Unit: q.Unit}
	m.withhold(why)
	return m
}

// offer is one load of one trial, with its grade.
type offer struct {
	record *record.Record
	load   *record.Load // nil for metrics of the whole trial
	block  int
	grade  string
}

// offers returns the trials in which a load counts.
func (t *Target) offers(load string) (out []offer) {
	for _, r := range t.Used {
		l := loadOf(r, load)
		if grade := LoadGrade(r, load); l != nil && good(grade) {
			out = append(out, offer{r, l, t.blocks(r), grade})
		}
	}
	return out
}

func (o offer) point(value float64) Point {
	return Point{o.record.Trial, o.block, value, o.grade}
}

// across summarizes a metric over trials. A single trial without a value withholds the metric,
// because the trials with a value may be a biased selection.
func across(q metric.Metric, offered []offer, confidence float64) Metric {
	m := Metric{Name: q.Name, Unit: q.Unit}
	lacking := 0
	for _, o := range offered {
		v := q.Value(o.record, o.load)
		if math.IsNaN(v) {
			lacking++
			continue
		}
		m.Points = append(m.Points, o.point(v))
	}
	if lacking > 0 {
		m.withhold(NoteOf(NoteInSomeTrials, OfTrials{lacking, len(offered)}, Lack(q.Name)))
		if q.Name == metric.Capacity {
			m.bound(offered, lacking)
		}
		return m
	}
	m.Summary = stats.Summarize(Values(m.Points), confidence)
	x := m.Summary.Center
	equal := slices.Min(Values(m.Points)) == x && slices.Max(Values(m.Points)) == x
	if equal && q.Exact {
		m.Summary = stats.Summary{
			N: len(m.Points), Center: x, Lo: x, Hi: x, Confidence: 1, Assumption: Exact,
		}
	}
	return m
}

func (m *Metric) withhold(why Note) {
	m.Withheld = why
	nan := math.NaN()
	m.Summary = stats.Summary{N: len(m.Points), Center: nan, Lo: nan, Hi: nan}
}

// bound fills the lower bound of a capacity of which some searches reached their limit: the highest
// rate that met the objectives in every trial.
func (m *Metric) bound(offered []offer, lacking int) {
	least, why := math.Inf(1), ""
	for _, o := range offered {
		s := o.load.Search
		if s.Reason == "" {
			least = min(least, s.RatePerS)
			continue
		}
		least, why = min(least, s.MetPerS), s.Reason
	}
	m.AtLeast = least
	ofTrials := OfTrials{lacking, len(offered)}
	m.Withheld = NoteOf(NoteSearchEnded, Rate(least), ofTrials, why)
	if least <= 0 {
		m.AtLeast = 0
		m.Withheld = NoteOf(NoteNoRateHeld, ofTrials, why)
	}
}

// loadInfos returns a scenario's loads in the order in which trials offered them.
func loadInfos(records []*record.Record) []LoadInfo {
	var names []string
	offered := map[string][]*record.Load{}
	for _, r := range records {
		for i := range r.Loads {
			l := &r.Loads[i]
			if offered[l.Name] == nil {
				names = append(names, l.Name)
			}
			offered[l.Name] = append(offered[l.Name], l)
		}
	}
	infos := make([]LoadInfo, len(names))
	for i, name := range names {
		ls := offered[name]
		infos[i] = LoadInfo{Name: name, Model: ls[0].Kind(), Title: loadTitle(ls)}
	}
	return infos
}

// loadTitle describes a load by the properties that its records share: "peak (closed, 64
// connections)" or "half (open, Poisson, 50 % of peak)". Properties that vary are left out and have
// a footnote.
func loadTitle(ls []*record.Load) string {
	words := []string{ls[0].Kind()}
	if ls[0].Search != nil {
		words = append(words, shared(ls, func(l *record.Load) string {
			if l.Search == nil {
				return ""
			}
			return l.Search.SLO
		}))
	} else if ls[0].Model == record.Open {
		if a := shared(ls, func(l *record.Load) string { return l.Arrivals }); a != "" {
			a = strings.Replace(a, "poisson", "Poisson", 1) // a person's name
			words = append(words, a)
		}
		if subject := shared(ls, func(l *record.Load) string { return l.RateOf }); subject != "" {
			words = append(words, share(subject))
		} else if r := shared(ls, rateText); r != "" {
			words = append(words, r)
		}
	} else if c := shared(ls, connectionsText); c != "" {
		words = append(words, c)
	}
	return ls[0].Name + " (" + strings.Join(words, ", ") + ")"
}

func rateText(l *record.Load) string { return units.Rate(l.RatePerS) + "/s" }

func connectionsText(l *record.Load) string {
	text := units.Plural(l.Connections, "connection")
	if l.Streams > 1 {
		text += " of " + units.Count(int64(l.Streams)) + " streams"
	}
	if l.Protocol != "" {
		text += ", " + l.Protocol
	}
	return text
}

// shared returns the common value of all loads, or "" if they differ.
func shared(ls []*record.Load, value func(*record.Load) string) string {
	first := value(ls[0])
	for _, l := range ls[1:] {
		if value(l) != first {
			return ""
		}
	}
	return first
}

// halfWidth returns the larger arm of an interval relative to its center.
func halfWidth(center, lo, hi float64) float64 {
	if lo == hi {
		return 0 // also about 0, which has no relative width
	}
	return max(hi-center, center-lo) / math.Abs(center)
}

// ShownByDefault reports whether a comparison shows a metric by default. It excludes latency at the
// peak if there is an open load, because it follows from connections and throughput (Little's law),
// metrics of the lab, and errors, of which more than one in a thousand makes a load INVALID: each
// additional row costs the others statistical power, because P values are corrected for their
// number.
func ShownByDefault(m Metric, loads []LoadInfo) bool {
	contains := func(model string) bool { return offers(loads, model) }
	info := metric.Named(m.Name, m.Unit)
	latency := info.Quantile > 0
	switch {
	case info.Lab, info.Asked:
		return false
	case m.Model == record.Closed:
		return !latency || !contains(record.Open)
	case m.Model == record.Capacity:
		return m.Name == metric.Capacity || !contains(record.Closed)
	case m.Model == record.Open:
		return latency || m.Name == metric.Achieved ||
			!contains(record.Closed) && m.Name != metric.Throughput
	}
	return true
}

// IsDefaultLoad reports whether the load of a metric is one that the bare name means: throughput,
// CPU and memory at closed loads, and percentiles at open ones, if there are such loads. At other
// loads these metrics follow from the load: under half load, the throughput is half of the peak.
func IsDefaultLoad(m Metric, loads []LoadInfo) bool {
	model := record.Open
	switch info := metric.Named(m.Name, m.Unit); {
	case info.Peak:
		model = record.Closed
	case info.Model != "":
		model = info.Model
	}
	return m.Model == "" || m.Model == model || !offers(loads, model)
}

func offers(loads []LoadInfo, model string) bool {
	return slices.ContainsFunc(loads, func(l LoadInfo) bool { return l.Model == model })
}

// Selected reports whether a metric is among the requested names: "p99" under the loads for which
// Tells is true, "half/p99" under one, "all", or without names the Usual metrics.
func Selected(m Metric, loads []LoadInfo, names []string) bool {
	if len(names) == 0 {
		return ShownByDefault(m, loads)
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == "all" || n == m.Name && IsDefaultLoad(m, loads) || n == m.Load+"/"+m.Name
	})
}
