package report

import (
	"cmp"
	"io"
	"maps"
	"math"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// JSONOptions has the contents of the document that records do not have.
type JSONOptions struct {
	Answers   []string          // as in HTMLOptions, in words
	Endpoints map[string]string // scenario -> its endpoints, separated by commas
}

const jsonVersion = 1

// ownTool is the load generator of loads without a driver.
const ownTool = "prony"

// JSON prints the run for programs; docs/formats/report-json.md describes the format.
func JSON(w io.Writer, s table.Study, o JSONOptions) error {
	return format.JSON(w, document(s, o))
}

type jsonDocument struct {
	Version   int               `json:"version"`
	Timestamp string            `json:"timestamp"`
	Suite     string            `json:"suite"`
	Run       string            `json:"run"`
	Answers   []string          `json:"answers,omitempty"` // how targets differ from the baseline
	System    jsonSystem        `json:"system"`
	Tools     map[string]string `json:"tools"`
	Results   []jsonResult      `json:"results"`
	Failures  []jsonFailure     `json:"failures"`
	Skipped   []jsonSkipped     `json:"skipped"`
	// Missing are the planned trials without a usable record, and Damaged says which lines of the
	// records were left out and why.
	Missing   []record.Planned `json:"missing,omitempty"`
	Damaged   []string         `json:"damaged,omitempty"`
	Numbers   table.Numbers    `json:"numbers"`
	Verdicts  map[string]int   `json:"verdicts"`
	Summary   []jsonSummary    `json:"summary"`
	Tiers     []jsonTiers      `json:"tiers"`
	Starts    []jsonStarts     `json:"starts,omitempty"`
	Notes     []string         `json:"notes"`
	Reproduce string           `json:"reproduce"`
}

type jsonSystem struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPUModel    string `json:"cpuModel"`
	CPUCores    int    `json:"cpuCores"`
	RAMGB       int64  `json:"ramGB"`
	JavaVersion string `json:"javaVersion"`
	Description string `json:"description"`
}

type jsonResult struct {
	Server   string           `json:"server"`
	Tool     string           `json:"tool"`
	Protocol string           `json:"protocol"`
	Scenario string           `json:"scenario"`
	Config   jsonConfig       `json:"config"`
	Metrics  jsonMetrics      `json:"metrics"`
	Trial    string           `json:"trial"`
	Block    int              `json:"block"`
	Order    int              `json:"order"`
	Load     string           `json:"load"`
	Model    string           `json:"model"`
	Verdict  string           `json:"verdict"`
	Findings []record.Finding `json:"findings"`
}

type jsonConfig struct {
	Threads     int     `json:"threads"`
	Connections int     `json:"connections"`
	Duration    string  `json:"duration"`
	Endpoint    string  `json:"endpoint"`
	Rate        float64 `json:"rate,omitempty"`
}

// jsonMetrics has NaN for unknown values, which prints as null: 0 µs would be wrong.
type jsonMetrics struct {
	Requests   int64   `json:"requests"`
	DurationUs float64 `json:"duration_us"`
	RPS        float64 `json:"rps"`
	AvgUs      float64 `json:"avg_latency_us"`
	P50Us      float64 `json:"p50_us"`
	P90Us      float64 `json:"p90_us"`
	P99Us      float64 `json:"p99_us"`
	P999Us     float64 `json:"p999_us"`
	MaxUs      float64 `json:"max_us"`

	// Intervals of the response times within the trial, by the percentile's name.
	Intervals map[string]jsonInterval `json:"intervals,omitempty"`
	// Independent is the effective number of independent responses of the trial.
	Independent        int64 `json:"independent_answers"`
	IndependentAssumed bool  `json:"independence_assumed"`

	ErrorsConnect int64   `json:"errors_connect"`
	ErrorsRead    int64   `json:"errors_read"`
	ErrorsWrite   int64   `json:"errors_write"`
	ErrorsTimeout int64   `json:"errors_timeout"`
	ErrorsStatus  int64   `json:"errors_status"`
	ErrorsBody    int64   `json:"errors_body"`
	ErrorsParse   int64   `json:"errors_parse"`
	ErrorsClosed  int64   `json:"errors_closed"`
	Retried       int64   `json:"retried"`
	Censored      int64   `json:"censored"`
	CPUUs         float64 `json:"cpu_us_per_request"`
	RSSBytes      float64 `json:"rss_bytes"`
}

// jsonInterval is the interval of one percentile in one trial, or the reason for its absence.
type jsonInterval struct {
	LoUs     float64 `json:"lo_us"`
	HiUs     float64 `json:"hi_us"`
	Withheld string  `json:"withheld,omitempty"`
}

type jsonFailure struct {
	Server   string `json:"server"`
	Scenario string `json:"scenario"`
	Trial    string `json:"trial"`
	Block    int    `json:"block"`
	Step     string `json:"step"`
	Error    string `json:"error"`
	Hint     string `json:"hint,omitempty"`
}

type jsonSkipped struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

type jsonSummary struct {
	Scenario   string     `json:"scenario"`
	Target     string     `json:"target"`
	Load       string     `json:"load"`
	Model      string     `json:"model"`
	Metric     string     `json:"metric"`
	Unit       string     `json:"unit"`
	N          int        `json:"n"`
	Samples    int64      `json:"samples,omitempty"`
	Center     float64    `json:"center"`
	Lo         float64    `json:"lo"`
	Hi         float64    `json:"hi"`
	Confidence float64    `json:"confidence"`
	Assumption string     `json:"assumption,omitempty"`
	Warning    string     `json:"warning,omitempty"`
	Tier       int        `json:"tier,omitempty"`
	Ratio      *jsonRatio `json:"ratio,omitempty"`
	Noise      *jsonNoise `json:"noise,omitempty"`
	Withheld   string     `json:"withheld,omitempty"`

	Doubt *table.Doubt `json:"possibleBias,omitempty"`
}

type jsonRatio struct {
	Baseline   string  `json:"baseline"`
	N          int     `json:"n"`
	Center     float64 `json:"center"`
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`
	P          float64 `json:"p"`
	Assumption string  `json:"assumption,omitempty"`
	Warning    string  `json:"warning,omitempty"`

	// Source, Grade and Doubt belong to a ratio from slices.
	Source table.Source `json:"source,omitempty"`
	Grade  string       `json:"grade,omitempty"`
	Doubt  *table.Doubt `json:"possibleBias,omitempty"`
}

// jsonStarts has the starts of a scenario in which targets ran side by side.
type jsonStarts struct {
	Scenario string `json:"scenario"`
	table.Starts
	Findings []record.Finding `json:"findings"` // on all starts together
}

// jsonNoise has the sources of the ranking metric's noise, as standard deviations of logarithms.
type jsonNoise struct {
	Between      float64 `json:"between"`
	Within       float64 `json:"within"`
	BetweenShare float64 `json:"betweenShare"`
}

// noiseOf returns nil if the noise is unknown.
func noiseOf(v stats.Variance) *jsonNoise {
	if math.IsNaN(v.Share) {
		return nil
	}
	return &jsonNoise{v.Between, v.Within, v.Share}
}

type jsonTiers struct {
	Scenario string     `json:"scenario"`
	Load     string     `json:"load"`
	Metric   string     `json:"metric"`
	Tiers    [][]string `json:"tiers"`
}

func document(s table.Study, o JSONOptions) jsonDocument {
	suite, run := origins(s)
	sheet := s.Sheet()
	d := jsonDocument{
		Version: jsonVersion, Suite: suite, Run: run, Reproduce: sheet.Reproduce,
		Tools: map[string]string{"selected": ownTool}, Verdicts: map[string]int{},
		Numbers: sheet.Numbers, Answers: o.Answers,
	}
	for _, t := range s.Verdicts {
		d.Verdicts[strings.ToLower(t.Grade)] = t.Trials
	}
	d.Missing, d.Damaged = s.Options.Missing, s.Options.Damaged
	for _, k := range s.Options.Skipped {
		d.Skipped = append(d.Skipped, jsonSkipped{k.Target, k.Reason})
	}
	for _, r := range s.Records {
		d.record(r, o)
	}
	for _, sc := range s.Scenarios {
		d.scenario(sc)
	}
	for _, tab := range sheet.Tables {
		d.Notes = append(d.Notes, table.Texts(tab.Notes)...)
	}
	if len(s.Records) > 0 {
		d.Timestamp = s.Records[0].Time.UTC().Format(time.RFC3339)
		d.system(s.Records[0].Provenance)
	}
	return d
}

func (d *jsonDocument) system(p record.Provenance) {
	d.System = jsonSystem{
		OS: p.OS, Arch: p.Arch, CPUModel: p.CPUModel, CPUCores: p.Cores,
		RAMGB:       (p.MemoryBytes + 1<<29) >> 30, // GiB, rounded to the nominal size
		JavaVersion: p.Tools["java"],
		Description: "kernel " + p.Kernel + ", governor " + p.Governor + ", cgroup " + p.Cgroup,
	}
	d.Tools["pronyVersion"] = p.Prony
	maps.Copy(d.Tools, p.Tools)
}

func (d *jsonDocument) record(r *record.Record, o JSONOptions) {
	name := table.RowName(r.Target)
	if r.Failure != nil || r.Outcome != record.Measured {
		f := jsonFailure{Server: name, Scenario: r.Scenario, Trial: r.Trial, Block: r.Block}
		if r.Failure != nil {
			f.Step, f.Error, f.Hint = r.Failure.Step, r.Failure.Error, r.Failure.Hint
		}
		d.Failures = append(d.Failures, f)
	}
	for i := range r.Loads {
		l := &r.Loads[i]
		out := jsonResult{
			Server: name, Tool: ownTool, Scenario: r.Scenario,
			Protocol: cmp.Or(strings.ToLower(l.Protocol), "http/1.1"),
			Config: jsonConfig{
				l.Threads, l.Connections, time.Duration(l.WindowNs).String(),
				o.Endpoints[r.Scenario], l.RatePerS,
			},
			Metrics: metricsOf(l), Trial: r.Trial, Block: r.Block, Order: r.Order,
			Load: l.Name, Model: l.Model, Verdict: table.LoadGrade(r, l.Name),
			Findings: wording.WithWords(table.FindingsOn(r, l.Name)),
		}
		if l.Driver != "" {
			out.Tool, _, _ = strings.Cut(l.Driver, " ") // without its version
		}
		d.Results = append(d.Results, out)
	}
}

func metricsOf(l *record.Load) jsonMetrics {
	rt := &l.ResponseTime
	m := jsonMetrics{
		Requests: l.Done, DurationUs: micros(float64(l.WindowNs)), RPS: l.ThroughputPerS,
		AvgUs: known(rt.MeanNs), P50Us: known(float64(rt.P50Ns)), P90Us: known(float64(rt.P90Ns)),
		P99Us: known(float64(rt.P99Ns)), P999Us: known(float64(rt.P999Ns)),
		MaxUs:         known(float64(rt.MaxNs)),
		ErrorsConnect: l.Errors.Connect, ErrorsRead: l.Errors.Read, ErrorsWrite: l.Errors.Write,
		ErrorsTimeout: l.Errors.Timeout, ErrorsStatus: l.Errors.Status, ErrorsBody: l.Errors.Body,
		ErrorsParse: l.Errors.Parse, ErrorsClosed: l.Errors.Closed, Retried: l.Retried,
		Censored: l.Censored,
		CPUUs:    known(l.Service.CPUPerRequestNs),
		RSSBytes: metric.Positive(float64(l.Service.RSSMaxBytes)),
	}
	m.intervals(l)
	return m
}

// known converts ns to µs; third-party generators do not report all of them.
func known(ns float64) float64 { return micros(metric.Positive(ns)) }

func (m *jsonMetrics) intervals(l *record.Load) {
	_, known := l.Autocorrelation.Worth()
	m.Independent, m.IndependentAssumed = independent(l), !known
	if l.ResponseTime.Count == 0 {
		return
	}
	m.Intervals = map[string]jsonInterval{}
	for _, p := range percentilesOf(l) {
		out := jsonInterval{micros(p.Lo), micros(p.Hi), p.Refusal("--measure", l.WindowNs)}
		if out.Withheld == "" && !p.HasInterval() {
			out.Withheld = "there is no histogram"
		}
		m.Intervals[p.Name] = out
	}
}

func (d *jsonDocument) scenario(sc *table.Scenario) {
	if len(sc.Ranking.Tiers) > 0 {
		d.Tiers = append(d.Tiers, jsonTiers{sc.Name, sc.Ranking.Load, sc.Ranking.Metric,
			sc.Ranking.Tiers})
	}
	if sc.Starts != nil {
		d.Starts = append(d.Starts, jsonStarts{sc.Name, *sc.Starts,
			wording.WithWords(sc.Findings)})
	}
	for _, t := range sc.Targets {
		for _, m := range t.Metrics {
			out := jsonSummary{
				Scenario: sc.Name, Target: t.Name, Load: m.Load, Model: m.Model, Metric: m.Name,
				Unit: m.Unit, N: m.Summary.N, Samples: m.Samples,
				Withheld: m.Withheld.String(),
				Doubt:    m.Doubt,
				Center:   m.Summary.Center, Lo: m.Summary.Lo, Hi: m.Summary.Hi,
				Confidence: math.NaN(), Assumption: m.Summary.Assumption,
				Warning: m.Summary.Warning,
			}
			if m.Summary.HasInterval() {
				out.Confidence = m.Summary.Confidence
			}
			if m.Load == sc.Ranking.Load && m.Name == sc.Ranking.Metric {
				out.Tier, out.Noise = t.Tier, noiseOf(t.Variance)
			}
			if r := m.Ratio; r != nil {
				out.Ratio = &jsonRatio{t.Reference, r.N, r.Center, r.Lo, r.Hi, r.Confidence, r.P,
					r.Assumption, r.Warning, m.Source, m.RatioGrade(), m.RatioDoubt}
			}
			d.Summary = append(d.Summary, out)
		}
	}
}

// micros converts ns to µs with three decimals, the precision of ns.
func micros(ns float64) float64 { return math.Round(ns) / 1e3 }
