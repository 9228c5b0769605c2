package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// The bundle is built from web/ by `npm run build` and committed, so that a checkout without Node
// prints reports; a test builds it again and compares.
//
//go:embed page/page.js
var pageJS string

//go:embed page/page.css
var pageCSS string

//go:embed *.gohtml
var pageFiles embed.FS

// pages has the templates of all pages, by the names of their files.
var pages = sync.OnceValues(func() (*template.Template, error) {
	return template.New("").Funcs(pageFuncs).ParseFS(pageFiles, "*.gohtml")
})

// HTMLOptions has the contents of the page beyond the study.
type HTMLOptions struct {
	Title   string           // of the browser's tab; empty: the suite's name
	Samples []record.Samples // the probe's series; empty: no panels of CPU and memory
	// Profiles come from ReadProfiles; empty: no flame graphs.
	Profiles []Profiled
	// Host is the result of prony doctor before the first trial (record.Run.Host); nil: not shown.
	Host *record.Grading
	// Answers describe how targets differ from the baseline; empty: the run is a ranking.
	Answers []runs.Answer
	// Only is the record of the only load, whose verdict is the answer; nil: it is another run.
	Only *record.Record
	// Gate is the decision on the comparison of Compare, which shades its margins; nil: none.
	Gate *compare.Gate
}

// OfRun returns the options for a run's own page from the files in its folder.
func OfRun(r *runs.Run, s table.Study) HTMLOptions {
	trials := map[string]bool{}
	for run := range detailed(s.Records) {
		trials[run[1]] = true
	}
	return HTMLOptions{Samples: r.Samples(trials), Host: r.Head.Host, Answers: r.Answers(&s),
		Only:     r.OnlyLoad(&s),
		Profiles: ReadProfiles(os.DirFS(r.Dir), slices.Concat(s.Records, s.Beside))}
}

// HTML prints one file that needs no server and no network. The comparison is part of the HTML, so
// it reads without scripts. The page's script draws the plots from a block of JSON and computes no
// statistics. A content security policy allows only that script and that style, so text from a
// service's log cannot run.
func HTML(w io.Writer, s table.Study, o HTMLOptions) error {
	data := dataOf(s, o)
	v := viewOf(s, o, data)
	return write(w, "page.gohtml", data, &v.frame, &v)
}

// frame has the parts of every page: the policy, the bundle and the data that its script draws.
type frame struct {
	Tab         string // title of the browser's tab and of links to the page
	Description string // the text that links to the page show below its title
	Policy      string
	Style       template.CSS
	Script      template.JS
	Data        template.JS
}

// write fills the frame of a view, and executes a page's template with the view.
func write(w io.Writer, page string, data any, f *frame, view any) error {
	block, err := json.Marshal(data) // escapes <, > and &: it cannot end its element
	if err != nil {
		return fmt.Errorf("encode the report's data: %w", err)
	}
	*f = frame{Tab: f.Tab, Description: f.Description,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " +
			digest(pageJS) + "; style-src " + digest(pageCSS),
		Script: template.JS(pageJS), Style: template.CSS(pageCSS), Data: template.JS(block),
	}
	all, err := pages()
	if err != nil {
		return fmt.Errorf("parse the report's template: %w", err)
	}
	var b bytes.Buffer // so that an error leaves no partial page
	if err := all.ExecuteTemplate(&b, page, view); err != nil {
		return fmt.Errorf("fill the report's template: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// digest returns a source expression of Content Security Policy Level 2, §4.2.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// anchor returns the name of a link target for a title.
func anchor(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

// interval allows a line break in an interval's text only at its dash, so that a unit stays with
// its number.
func interval(text string) string {
	lo, hi, ok := strings.Cut(text, " – ")
	if !ok {
		return text
	}
	const space = "\u00a0" // no-break
	return strings.ReplaceAll(lo+" –", " ", space) + " " + strings.ReplaceAll(hi, " ", space)
}

// mostUnfolded is how many trials or rows a page has as markup at once. More of them are in a
// noscript element, which is one node, until a reader opens their details (web/src/fold.ts).
const mostUnfolded = 100

func many(n int) bool { return n > mostUnfolded }

var pageFuncs = template.FuncMap{
	"lower":    strings.ToLower,
	"anchor":   anchor,
	"interval": interval,
	"many":     many,
	// parts splits a name at possible line breaks.
	"parts": func(name string) []string { return strings.SplitAfter(name, "/") },
	// named reports whether the column names the rows.
	"named": func(c table.Column) bool { return c.Role == table.RoleName },
	"add":   func(a, b int) int { return a + b },
	"classes": func(c table.Column, first bool) string {
		var classes []string
		for _, class := range []struct {
			name string
			ok   bool
		}{
			{"tier", c.Role == table.RoleTier}, {"left", c.Align() == format.Left},
			{"first", first}, {"extra", c.Weight >= table.Extra},
		} {
			if class.ok {
				classes = append(classes, class.name)
			}
		}
		return strings.Join(classes, " ")
	},
}

// The page's data, as web/src/data.ts reads it. Unknown numbers are null.

type pageData struct {
	Targets   []string       `json:"targets"` // the index of a target selects its color on the page
	Scenarios []pageScenario `json:"scenarios"`
	Flames    *pageFlames    `json:"flames"`
}

type pageScenario struct {
	Name    string        `json:"name"`
	Latency []pageLatency `json:"latency"`
	Loads   *pageLoads    `json:"loads"`
	Cost    *pageCost     `json:"cost"`
	Series  []pageSeries  `json:"series"`
}

type pageLatency struct {
	Load      string     `json:"load"`
	Title     string     `json:"title"`
	Quantiles []float64  `json:"quantiles"`
	Lines     []pageLine `json:"lines"`
}

type pageLine struct {
	Target string     `json:"target"`
	Ms     []*float64 `json:"ms"`
	Lo     []*float64 `json:"lo"` // of the interval across trials
	Hi     []*float64 `json:"hi"`
}

type pageSeries struct {
	Target string      `json:"target"`
	Trials []pageTrial `json:"trials"`
}

type pageTrial struct {
	Trial   string     `json:"trial"`
	Block   int        `json:"block"`
	Repeat  string     `json:"repeat"` // the unit of Block: "block" or "start"
	Load    string     `json:"load"`
	Open    bool       `json:"open"` // an open load, whose response times are of its own schedule
	Verdict string     `json:"verdict"`
	Seconds []float64  `json:"seconds"`
	PerS    []float64  `json:"perS"`
	P99Ms   []*float64 `json:"p99Ms"`
	Probe   *pageProbe `json:"probe"`
	Warmup  *pageWarm  `json:"warmup"`
}

// pageWarm is the closed load before the window. Times count from the window's start, so they are
// negative; the time between the two (the load's lead-in) is excluded.
type pageWarm struct {
	Seconds []float64   `json:"seconds"`
	PerS    []float64   `json:"perS"`
	Kind    string      `json:"kind"`
	Steady  *float64    `json:"steady"`
	Peak    *float64    `json:"peak"`
	Levels  []pageLevel `json:"levels"`
}

type pageLevel struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	PerS float64 `json:"perS"`
}

type pageProbe struct {
	Seconds []float64 `json:"seconds"`
	Cores   []float64 `json:"cores"`
	MiB     []float64 `json:"mib"`
}

func dataOf(s table.Study, o HTMLOptions) pageData {
	d := pageData{Targets: []string{}, Scenarios: []pageScenario{},
		Flames: flamesOf(s.Scenarios, o.Profiles, flameBytes)}
	described, samples := detailed(s.Records), map[sampled]*record.Samples{}
	for i := range o.Samples {
		samples[sampled{o.Samples[i].Trial, o.Samples[i].Load}] = &o.Samples[i]
	}
	for _, sc := range s.Scenarios {
		for _, t := range sc.Targets {
			d.Targets = table.AddNew(d.Targets, t.Name)
		}
		p := pageScenario{
			Name: sc.Name, Latency: []pageLatency{}, Series: []pageSeries{},
			Loads: loadsOf(sc), Cost: costOf(sc),
		}
		for _, l := range sc.Loads {
			if c := latencyOf(sc, l); len(c.Lines) > 0 {
				p.Latency = append(p.Latency, c)
			}
		}
		// Latency of open loads comes first, because that of a closed loop matters less.
		slices.SortStableFunc(p.Latency, func(a, b pageLatency) int {
			return modelRank(sc, a.Load) - modelRank(sc, b.Load)
		})
		for _, t := range sc.Targets {
			if ps := seriesOfTarget(t, described, samples); len(ps.Trials) > 0 {
				p.Series = append(p.Series, ps)
			}
		}
		d.Scenarios = append(d.Scenarios, p)
	}
	return d
}

func modelRank(sc *table.Scenario, load string) int {
	if sc.Load(load).Model == record.Open {
		return 0
	}
	return 1
}

// latencyOf aligns the curves of a load to one list of quantiles, that of the longest curve.
func latencyOf(sc *table.Scenario, l table.LoadInfo) pageLatency {
	out := pageLatency{Load: l.Name, Title: l.Title}
	for _, t := range sc.Targets {
		if c := t.Curve(l.Name); len(c.Quantiles) > len(out.Quantiles) {
			out.Quantiles = c.Quantiles
		}
	}
	for _, t := range sc.Targets {
		c, n := t.Curve(l.Name), len(out.Quantiles)
		if len(c.Quantiles) == 0 {
			continue
		}
		line := pageLine{Target: t.Name, Ms: make([]*float64, n), Lo: make([]*float64, n),
			Hi: make([]*float64, n)}
		for k := range c.Quantiles { // every curve starts at the median, on the same grid
			line.Ms[k] = format.Finite(c.Ns[k] / 1e6)
			line.Lo[k], line.Hi[k] = milli(c.Lo[k]), milli(c.Hi[k])
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}

func seriesOfTarget(t *table.Target, described shown,
	samples map[sampled]*record.Samples) pageSeries {
	out := pageSeries{Target: t.Name}
	for _, r := range t.Trials {
		if !described.includes(r) {
			continue
		}
		for i := range r.Loads {
			trial, ok := seriesOfLoad(r, &r.Loads[i], samples)
			if ok && i == 0 { // the warm-up precedes the first load, whatever its model
				trial.Warmup = warmOf(r.Warmup)
			}
			if ok {
				out.Trials = append(out.Trials, trial)
			}
		}
	}
	return out
}

// seriesOfLoad returns a load of a trial over time, also of INVALID trials, because it can show the
// cause.
func seriesOfLoad(r *record.Record, l *record.Load, samples map[sampled]*record.Samples) (pageTrial,
	bool) {
	step := float64(l.Series.IntervalNs) / 1e9
	if step <= 0 || len(l.Series.Done) == 0 {
		return pageTrial{}, false
	}
	out := pageTrial{
		Trial: r.Trial, Block: r.Block, Repeat: table.RepeatOf(r), Load: l.Name,
		Open:    l.Model == record.Open,
		Verdict: table.LoadGrade(r, l.Name),
		P99Ms:   []*float64{}, Probe: probeOf(samples[sampled{r.Trial, l.Name}]),
	}
	for i, done := range l.Series.Done {
		end, length := step*float64(i+1), step
		if window := float64(l.WindowNs) / 1e9; window > end-step && window < end {
			end, length = window, window-(end-step)
		}
		out.Seconds = append(out.Seconds, roundTo(end, 3))
		out.PerS = append(out.PerS, roundTo(float64(done)/length, 1))
		if i < len(l.Series.P99Ns) {
			var ms *float64
			if ns := l.Series.P99Ns[i]; ns > 0 {
				ms = format.Finite(float64(ns) / 1e6)
			}
			out.P99Ms = append(out.P99Ms, ms)
		}
	}
	return out, true
}

func warmOf(w record.Warmup) *pageWarm {
	if w.IntervalNs <= 0 || len(w.RatePerS) == 0 {
		return nil
	}
	step := float64(w.IntervalNs) / 1e9
	total := step * float64(len(w.RatePerS))
	out := &pageWarm{Kind: warmupKind(w), Levels: []pageLevel{}}
	for i, perS := range w.RatePerS {
		out.Seconds = append(out.Seconds, roundTo(step*float64(i+1)-total, 3))
		out.PerS = append(out.PerS, roundTo(perS, 1))
	}
	valueAt := func(ns int64, known bool) *float64 {
		if !known {
			return nil
		}
		return format.Finite(roundTo(float64(ns)/1e9-total, 3))
	}
	out.Steady, out.Peak = valueAt(w.SteadyAtNs, w.Steady), valueAt(w.PeakAtNs, peaked(w))
	for _, l := range w.Levels {
		out.Levels = append(out.Levels, pageLevel{roundTo(float64(l.FromNs)/1e9-total, 3),
			roundTo(float64(l.ToNs)/1e9-total, 3), roundTo(l.MeanPerS, 1)})
	}
	return out
}

// sampled names the probe's series of a load.
type sampled struct{ trial, load string }

// probeOf returns nil without samples.
func probeOf(s *record.Samples) *pageProbe {
	if s == nil {
		return nil
	}
	p := &pageProbe{}
	for i := range min(len(s.TimeNs), len(s.CPUCores), len(s.RSSBytes)) {
		p.Seconds = append(p.Seconds, roundTo(float64(s.TimeNs[i])/1e9, 3))
		p.Cores = append(p.Cores, roundTo(s.CPUCores[i], 3))
		p.MiB = append(p.MiB, roundTo(float64(s.RSSBytes[i])/(1<<20), 1))
	}
	if len(p.Seconds) == 0 {
		return nil
	}
	return p
}

// roundTo keeps the page small: a plot needs no more digits than pixels.
func roundTo(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
