package compare

import (
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Numbers is what one run brings to any comparison: its levels, how each was measured, and what the
// run says of its noise. Two of them are all that Compare makes a Comparison of, so that a page
// without a server can compare any two published runs. All that needs one run alone is computed
// here; what is left to the page (web/app/compare) is held to Compare by a test.
type Numbers struct {
	Version    int               `json:"version"`
	Run        string            `json:"run"`
	Began      time.Time         `json:"began"` // of the first record
	Confidence float64           `json:"confidence"`
	Reproduce  string            `json:"reproduce"`
	Artifacts  map[string]string `json:"artifacts"` // by row: hashes of what it ran
	Scenarios  []ScenarioNumbers `json:"scenarios"`
}

// ScenarioNumbers are those of one scenario.
type ScenarioNumbers struct {
	Name    string           `json:"name"`
	Loads   []table.LoadInfo `json:"loads"`
	Targets []TargetNumbers  `json:"targets"`
}

// TargetNumbers are those of one row.
type TargetNumbers struct {
	Subject   Subject         `json:"subject"`
	Ran       string          `json:"ran"` // how its artifact was run
	Service   string          `json:"service"`
	Reference string          `json:"reference"` // the row that its ratios refer to, or empty
	Method    []table.Aspect  `json:"method"`
	Told      []string        `json:"told"`   // how its own trials differ in method
	Shares    []ShareNumbers  `json:"shares"` // open loads at a share of each side's own peak
	Metrics   []MetricNumbers `json:"metrics"`
}

// ShareNumbers is an open load whose rate follows from another one's.
type ShareNumbers struct {
	Load   string  `json:"load"`
	RateOf string  `json:"rateOf"`
	Rate   float64 `json:"rate"` // the median of what was offered, per second
}

// MetricNumbers is one metric of a row; those that nobody sees without asking are left out.
type MetricNumbers struct {
	Load     string `json:"load"`
	Model    string `json:"model"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	Better   string `json:"better"`
	WhenUp   string `json:"whenUp"`   // what it is called when it got better
	WhenDown string `json:"whenDown"` // when it got worse
	Latency  bool   `json:"latency"`
	Value    Value  `json:"value"`
	// Noise is null where the run does not say more of it than the values do; Alone says that a
	// block has several, as in duets.
	Noise *stats.Noise `json:"noise"`
	Alone bool         `json:"alone"`
}

const numbersVersion = 1

// NumbersOf makes a run's, from the study of its records at the default confidence. The side's
// target has no part in it.
func NumbersOf(s Side, study table.Study) Numbers {
	x := &side{s, study}
	n := Numbers{Version: numbersVersion, Run: s.Head.ID, Confidence: table.DefaultConfidence,
		Reproduce: s.Reproduce, Artifacts: map[string]string{}}
	if len(s.Records) > 0 {
		n.Began = s.Records[0].Time
	}
	for _, row := range x.rows() {
		n.Artifacts[row] = artifacts(x, row)
	}
	for _, sc := range x.study.Scenarios {
		n.Scenarios = append(n.Scenarios, x.numbers(sc))
	}
	return n
}

func (s *side) numbers(sc *table.Scenario) ScenarioNumbers {
	out := ScenarioNumbers{Name: sc.Name, Loads: sc.Loads}
	fits := map[[2]string]*stats.Blocks{}
	for _, t := range sc.Targets {
		row := TargetNumbers{Subject: s.subject(sc.Name, t), Service: t.Info.Service,
			Reference: t.Reference, Told: table.Texts(t.Method),
			Method: s.method(sc.Name, t).Aspects}
		row.Ran = row.Subject.ran
		for _, l := range measured(t)[0].Loads {
			if l.Model == record.Open && l.RateOf != "" {
				row.Shares = append(row.Shares, ShareNumbers{l.Name, l.RateOf, rates(t, l.Name)})
			}
		}
		for _, m := range t.Metrics {
			if of := metric.Named(m.Name, m.Unit); !of.Lab && !of.Asked {
				row.Metrics = append(row.Metrics, s.metric(sc, t, m, fits))
			}
		}
		out.Targets = append(out.Targets, row)
	}
	return out
}

func (s *side) metric(sc *table.Scenario, t *table.Target, m table.Metric,
	fits map[[2]string]*stats.Blocks) MetricNumbers {
	meaning := metric.Named(m.Name, m.Unit)
	r := newRow(m, m)
	out := MetricNumbers{Load: m.Load, Model: m.Model, Metric: m.Name, Unit: m.Unit,
		Better: r.Better, WhenUp: meaning.Better, WhenDown: meaning.Worse,
		Latency: meaning.Quantile > 0, Value: r.A}
	n := noise{a: s, pairing: pairing{scenario: sc.Name}}
	item := n.item(t, &r)
	out.Alone = m.Known() && len(item.Values) < len(m.Points)
	key := [2]string{m.Load, m.Name}
	if fits[key] == nil {
		fits[key] = n.of(s, &r, table.DefaultConfidence)
	}
	if x, ok := fits[key].Noise(t.Name); ok {
		out.Noise = &x
	}
	return out
}
