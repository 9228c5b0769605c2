package report

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"prony/internal/profile"
	"prony/internal/table"
)

// flameBytes bounds what all flame graphs together add to a page, as JSON. A page of some hundred
// kilobytes can be mailed, and a frame of a thousandth is a pixel.
const flameBytes = 400_000

// pruneFrom is the share of a profile from which frames are pruned when there is no room:
// internal/profile has merged smaller ones already. pruneStep is by how much it grows until there
// is.
const (
	pruneFrom = 0.001
	pruneStep = 1.25
)

// pageFlames are all profiles of a report. Names are shared: the same functions are everywhere.
type pageFlames struct {
	Names    []string      `json:"names"`
	Shorts   []string      `json:"shorts"` // without packages; empty: as the name
	Least    float64       `json:"least"`  // the share of a profile below which frames are merged
	Profiles []pageProfile `json:"profiles"`
}

// pageProfile has its frames in one list, parents before their children, three numbers each: name,
// value, number of children. What a frame holds itself is what its children leave.
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

// flamesOf fits the profiles of a study into so many bytes, the smallest frames of all given up
// first. Nil: there is none to draw.
func flamesOf(scenarios []*table.Scenario, profiles []Profiled, most int) *pageFlames {
	profiles = ordered(scenarios, profiles)
	if len(profiles) == 0 {
		return nil
	}
	for least := pruneFrom; ; least *= pruneStep {
		f := packed(scenarios, profiles, least)
		block, err := json.Marshal(f)
		if err != nil {
			panic("report: texts and whole numbers are always JSON: " + err.Error())
		}
		if len(block) <= most || least >= 1 { // from 1 on nothing is left but the roots
			return f
		}
	}
}

// ordered are the profiles that have a flame graph and a scenario, ordered by scenario, target as
// ranked, kind, load as offered, and process.
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

// targetAt ranks a target; one that only trials beside the comparison have comes last.
func targetAt(sc *table.Scenario, name string) int {
	at := slices.IndexFunc(sc.Targets, func(t *table.Target) bool { return t.Name == name })
	if at < 0 {
		return len(sc.Targets)
	}
	return at
}

// loadAt puts open loads first: what a target does at a given load is the question.
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
		at, ok := known[full]
		if !ok {
			at = int64(len(out.Names))
			known[full] = at
			out.Names, out.Shorts = append(out.Names, full), append(out.Shorts, short)
		}
		return at
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

// prune merges frames that hold less than least into one beside their siblings, which has what they
// had: all sums stay.
func prune(f *profile.Frame, least int64) *profile.Frame {
	out := &profile.Frame{Name: f.Name, Full: f.Full, Value: f.Value, Self: f.Self}
	var rest int64
	for _, c := range f.Children {
		if c.Value < least || c.Name == profile.Small {
			rest += c.Value
			continue
		}
		out.Children = append(out.Children, prune(c, least))
	}
	if rest > 0 {
		out.Children = append(out.Children,
			&profile.Frame{Name: profile.Small, Value: rest, Self: rest})
	}
	return out
}
