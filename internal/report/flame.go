package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/observe/profile"
	"prony.example/record"
)

// topRows is the number of functions in a profile's table.
const topRows = 10

// Profiled is the profile of a target under a load, summed over its trials.
type Profiled struct {
	Scenario   string
	Target     string // as in the comparison's rows, with " +variant"
	Load       string
	Kind       string // cpu, alloc, lock or offcpu
	Process    string // of a system's processes
	Tool       string // with its version
	Unit       string // of the values: nanoseconds or bytes
	Samples    int64  // -1: the profiles do not say
	DurationNs int64  // of all profiles together
	Trials     int    // the number of trials in the sum
	Beside     bool   // whether these trials are outside the comparison, with more observers
	Notes      []string
	Top        []profile.Row  // by their own values
	Flame      *profile.Frame // nil: no flame graph
	Missing    []string       // profiles that could not be taken or read, and why
}

// profiledKey identifies the profiles that are summed.
type profiledKey struct{ scenario, target, load, kind, process string }

// saidProfiles is the number of profiles that a sentence describes.
const saidProfiles = 4

// ReadProfiles reads the profiles that the records name from the run's folder, and sums the
// profiles of one target, load, kind and process. If trials of the comparison were profiled, it
// leaves out the trials outside the comparison, which had more observers. A lost or broken file is
// Missing rather than an error, because only a detail view depends on it.
func ReadProfiles(run fs.FS, records []*record.Record) []Profiled {
	var out []Profiled
	have := map[profiledKey]bool{}
	for _, extra := range []bool{false, true} {
		used, order := map[profiledKey][]record.Profile{}, []profiledKey(nil)
		for _, r := range records {
			if (r.Role != "") != extra {
				continue
			}
			for _, p := range r.Profiles {
				key := profiledKey{r.Scenario, table.RowName(r.Target), p.Load, p.Kind, p.Process}
				if used[key] == nil {
					order = append(order, key)
				}
				used[key] = append(used[key], p)
			}
		}
		for _, key := range order {
			if have[key] {
				continue
			}
			p := addUp(run, key, used[key])
			p.Beside, have[key] = extra, p.Flame != nil
			out = append(out, p)
		}
	}
	return out
}

// addUp sums the profiles of several trials.
func addUp(run fs.FS, key profiledKey, used []record.Profile) Profiled {
	out := Profiled{Scenario: key.scenario, Target: key.target, Load: key.load, Kind: key.kind,
		Process: key.process}
	var all []*pprof.Profile
	for _, t := range used {
		if t.Failed != "" {
			out.Missing = append(out.Missing, t.Failed)
			continue
		}
		p, err := profile.Open(run, t.File)
		if err != nil {
			out.Missing = append(out.Missing, err.Error())
			continue
		}
		all, out.DurationNs = append(all, p), out.DurationNs+t.DurationNs
	}
	if len(all) == 0 {
		return out
	}
	sum, err := profile.Merge(all...)
	if err != nil {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	out.Trials = len(all)
	out.Fill(sum)
	return out
}

// Fill sets what follows from the sum of the profiles.
func (p *Profiled) Fill(sum *pprof.Profile) {
	total, unit := profile.Total(sum)
	if total <= 0 {
		p.Missing = append(p.Missing, "there are no samples: the process was idle, or the "+
			"profiler does not support it")
		return
	}
	p.Unit, p.Samples = unit, profile.Samples(sum)
	p.Tool, p.Notes = profile.Tool(sum), profile.Notes(sum)
	p.Top, p.Flame = profile.Top(sum, topRows), profile.Flame(sum)
}

// profileView is the page of one profile, or of the difference of two.
type profileView struct {
	frame
	Title string
	Flame *flameView
}

// Profile prints a profile as one HTML file with the report's flame graph. With another one it
// shows the difference from that at first.
func Profile(w io.Writer, title string, shown Profiled, against ...Profiled) error {
	all := append([]Profiled{shown}, against...)
	study := table.Study{Scenarios: []*table.Scenario{{}}}
	data := pageData{Targets: []string{}, Scenarios: []pageScenario{{}},
		Flames: fitted(study.Scenarios, all, flameBytes)}
	data.Flames.Against = len(against) > 0
	v := profileView{Title: title,
		Flame: flameViewOf(study, study.Scenarios[0], HTMLOptions{Profiles: all}, data, 1)}
	v.Tab, v.Description = title, v.Flame.Says
	return write(w, "page_profile.gohtml", data, &v.frame, &v)
}

// what names a profile within its scenario.
func (p *Profiled) what() string {
	name := p.Target
	if p.Process != "" {
		name += ", " + p.Process
	}
	return fmt.Sprintf("%s, %s at %s", name, kindName(p.Kind), p.Load)
}

// about describes the basis of a profile: its tool, samples and duration.
func (p *Profiled) about() string {
	words := []string{p.Tool}
	if p.Samples >= 0 {
		words = append(words, units.Plural(p.Samples, "sample"))
	}
	words = append(words, fmt.Sprintf("%s in %s", units.Duration(float64(p.DurationNs)),
		units.Plural(p.Trials, "trial")))
	if p.Beside {
		words[len(words)-1] += " beside the comparison"
	}
	return strings.Join(words, ", ")
}

// kindName returns a kind in words.
func kindName(kind string) string {
	if name, ok := map[string]string{profile.CPU: "CPU", profile.Alloc: "allocation",
		profile.Lock: "waiting for locks", profile.OffCPU: "off-CPU"}[kind]; ok {
		return name
	}
	return kind
}

// flameBytes bounds the size of all flame graphs in a page, as JSON. A page of some hundred
// kilobytes fits into a mail, and a frame of a thousandth is a pixel.
const flameBytes = 400_000

// pruneFrom is the initial share of a profile below which frames are pruned if the graphs are too
// large; internal/observe/profile has already merged smaller ones. pruneStep is the factor by which
// this share grows until the graphs fit.
const (
	pruneFrom = 0.001
	pruneStep = 1.25
)

// pageFlames has all profiles of a report. They share names, because most functions recur.
type pageFlames struct {
	Names  []string `json:"names"`
	Shorts []string `json:"shorts"` // without packages; empty: same as the name
	Least  float64  `json:"least"`  // the share of a profile below which frames are merged
	// Against has the page first show the difference of the first profile from the second one.
	Against  bool          `json:"against,omitempty"`
	Profiles []pageProfile `json:"profiles"`
}

// pageProfile has its frames in one list, parents before their children, with three numbers each:
// name, value, number of children. A frame's own value is its value without that of its children.
type pageProfile struct {
	Scenario int     `json:"scenario"` // from 0
	Target   string  `json:"target"`
	Kind     string  `json:"kind"`
	Load     string  `json:"load"`
	Process  string  `json:"process"`
	Unit     string  `json:"unit"`
	About    string  `json:"about"`
	Samples  int64   `json:"samples"`
	Frames   []int64 `json:"frames"`
}

// flamesOf fits the profiles of a study into most bytes of JSON and prunes the smallest frames of
// all profiles first. It returns nil without a profile.
func flamesOf(scenarios []*table.Scenario, profiles []Profiled, most int) *pageFlames {
	profiles = ordered(scenarios, profiles)
	if len(profiles) == 0 {
		return nil
	}
	return fitted(scenarios, profiles, most)
}

// fitted prunes profiles until they fit.
func fitted(scenarios []*table.Scenario, profiles []Profiled, most int) *pageFlames {
	for least := pruneFrom; ; least *= pruneStep {
		f := packed(scenarios, profiles, least)
		block, err := json.Marshal(f)
		if err != nil {
			panic("report: texts and whole numbers are always JSON: " + err.Error())
		}
		if len(block) <= most || least >= 1 { // from 1 on only the roots remain
			return f
		}
	}
}

// ordered returns the profiles with a flame graph and a scenario, ordered by scenario, rank of the
// target, kind, load as offered, and process.
func ordered(scenarios []*table.Scenario, profiles []Profiled) []Profiled {
	out := slices.DeleteFunc(slices.Clone(profiles), func(p Profiled) bool {
		return p.Flame == nil || scenarioAt(scenarios, p.Scenario) < 0
	})
	slices.SortStableFunc(out, func(a, b Profiled) int {
		k := scenarioAt(scenarios, a.Scenario)
		if d := cmp.Compare(k, scenarioAt(scenarios, b.Scenario)); d != 0 {
			return d
		}
		sc := scenarios[k]
		return cmp.Or(
			cmp.Compare(targetAt(sc, a.Target), targetAt(sc, b.Target)),
			cmp.Compare(a.Target, b.Target),
			cmp.Compare(slices.Index(profile.Kinds, a.Kind), slices.Index(profile.Kinds, b.Kind)),
			cmp.Compare(loadAt(sc, a.Load), loadAt(sc, b.Load)),
			cmp.Compare(a.Process, b.Process),
		)
	})
	return out
}

func scenarioAt(scenarios []*table.Scenario, name string) int {
	return slices.IndexFunc(scenarios, func(sc *table.Scenario) bool { return sc.Name == name })
}

// targetAt returns a target's rank; a target without trials in the comparison comes last.
func targetAt(sc *table.Scenario, name string) int {
	index := slices.IndexFunc(sc.Targets, func(t *table.Target) bool { return t.Name == name })
	if index < 0 {
		return len(sc.Targets)
	}
	return index
}

// loadAt ranks open loads first, because behavior at a given load is the main question.
func loadAt(sc *table.Scenario, name string) int {
	i := slices.IndexFunc(sc.Loads, func(l table.LoadInfo) bool { return l.Name == name })
	return modelRank(sc, name)*len(sc.Loads) + i
}

func packed(scenarios []*table.Scenario, profiles []Profiled, least float64) *pageFlames {
	out := &pageFlames{Least: roundTo(least, 4)}
	known := map[string]int64{}
	number := func(f *profile.Frame) int64 {
		full, short := f.Name, ""
		if f.Full != "" {
			full, short = f.Full, f.Name
		}
		offset, ok := known[full]
		if !ok {
			offset = int64(len(out.Names))
			known[full] = offset
			out.Names, out.Shorts = append(out.Names, full), append(out.Shorts, short)
		}
		return offset
	}
	for _, p := range profiles {
		page := pageProfile{Scenario: scenarioAt(scenarios, p.Scenario), Target: p.Target,
			Kind: p.Kind, Load: p.Load, Process: p.Process, Unit: p.Unit, About: p.about(),
			Samples: p.Samples}
		var flat func(*profile.Frame)
		flat = func(f *profile.Frame) {
			page.Frames = append(page.Frames, number(f), f.Value, int64(len(f.Children)))
			for _, c := range f.Children {
				flat(c)
			}
		}
		flat(prune(p.Flame, int64(math.Ceil(least*float64(p.Flame.Value)))))
		out.Profiles = append(out.Profiles, page)
	}
	return out
}

// prune merges frames smaller than least into one sibling frame with their sum, so that all sums
// stay.
func prune(f *profile.Frame, least int64) *profile.Frame {
	out := &profile.Frame{Name: f.Name, Full: f.Full, Value: f.Value, Self: f.Self}
	var remaining int64
	for _, c := range f.Children {
		if c.Value < least || c.Name == profile.Small {
			remaining += c.Value
			continue
		}
		out.Children = append(out.Children, prune(c, least))
	}
	if remaining > 0 {
		out.Children = append(out.Children,
			&profile.Frame{Name: profile.Small, Value: remaining, Self: remaining})
	}
	return out
}

// flameView has a scenario's profiles without scripts: findings in words, functions in tables.
type flameView struct {
	plotView
	Number  int      // of the scenario
	Drawn   bool     // whether there is a profile to draw
	Least   string   // the share below which frames are merged
	Notes   []string // remarks on how profiles were taken
	Missing []string
}

// flameViewOf returns nil if no profile was requested.
func flameViewOf(s table.Study, sc *table.Scenario, o HTMLOptions, d pageData,
	number int,
) *flameView {
	v := &flameView{Number: number}
	notes := map[string][]string{}
	tables := map[string]*dataTable{}
	var order []string
	var texts []string
	for _, p := range ordered(s.Scenarios, o.Profiles) {
		if p.Scenario != sc.Name {
			continue
		}
		v.Drawn = true
		for _, n := range p.Notes {
			notes[n] = append(notes[n], p.what())
		}
		if tables[p.Target] == nil {
			order = append(order, p.Target)
			tables[p.Target] = &dataTable{Caption: fmt.Sprintf(
				"%s: the %d functions with the largest own share", p.Target, topRows),
				Columns: []string{"function", "of", "itself", "share", "including the functions " +
					"that it calls"}}
			if len(texts) < saidProfiles && len(p.Top) > 0 {
				texts = append(texts, fmt.Sprintf("%s: %s itself, %s", p.what(),
					profile.Short(p.Top[0].Name), units.Percent(p.Top[0].FlatShare)))
			}
		}
		tables[p.Target].Rows = append(tables[p.Target].Rows, topOf(p)...)
	}
	for _, p := range o.Profiles {
		for _, why := range p.Missing {
			if p.Scenario == sc.Name {
				v.Missing = append(v.Missing, p.what()+": "+why)
			}
		}
	}
	if !v.Drawn && len(v.Missing) == 0 {
		return nil
	}
	for _, name := range order {
		v.Data = append(v.Data, *tables[name])
	}
	for _, n := range slices.Sorted(maps.Keys(notes)) {
		v.Notes = append(v.Notes, n+" ("+strings.Join(notes[n], "; ")+")")
	}
	if d.Flames != nil {
		v.Least = units.Percent(d.Flames.Least)
	}
	if len(texts) > 0 {
		v.Says = "Functions with the largest own shares: " + strings.Join(texts, "; ") + "."
	}
	return v
}

// topOf returns a profile's rows in the table of its target.
func topOf(p Profiled) (out [][]string) {
	subject := fmt.Sprintf("%s at %s", kindName(p.Kind), p.Load)
	if p.Process != "" {
		subject = p.Process + ", " + subject
	}
	for _, r := range p.Top {
		out = append(out, []string{r.Name, subject, profile.Amount(float64(r.Flat), p.Unit),
			units.Percent(r.FlatShare), units.Percent(r.CumShare)})
	}
	return out
}
