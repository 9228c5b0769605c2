package report

import (
	"fmt"
	"io/fs"
	"strings"

	pprof "github.com/google/pprof/profile"

	"prony/internal/profile"
	"prony/internal/result"
	"prony/internal/table"
	"prony/internal/unit"
)

// topRows is how many functions of a profile stand in its table.
const topRows = 10

// Profiled is where the work of a target went during a load: the profiles of its trials added up.
type Profiled struct {
	Scenario   string
	Target     string // as the comparison's rows are named, " +variant" with it
	Load       string
	Kind       string // cpu, alloc, lock or offcpu
	Process    string // of a system
	Tool       string // with its version
	Unit       string // of the values: nanoseconds or bytes
	Samples    int64  // -1: the profiles do not say
	DurationNs int64  // of all of them
	Trials     int    // that were added up
	Beside     bool   // whether those were beside the comparison, watched by more than this
	Notes      []string
	Top        []profile.Row  // by what they hold themselves
	Flame      *profile.Frame // nil: there is none
	Missing    []string       // profiles that could not be taken or read, and why
}

// profiledKey tells apart what is not added up.
type profiledKey struct{ scenario, target, load, kind, process string }

// ReadProfiles reads the profiles that the records name from the run's folder, and adds up those of
// one target, load, kind and process. Where the comparison's own trials were profiled, those beside
// it, which more was watching, are left out. A file that is lost or broken is Missing, no error:
// what is lost with it is a drill-down.
func ReadProfiles(run fs.FS, records []*result.Record) []Profiled {
	var out []Profiled
	have := map[profiledKey]bool{}
	for _, beside := range []bool{false, true} {
		taken, order := map[profiledKey][]result.Profile{}, []profiledKey(nil)
		for _, r := range records {
			if (r.Role != "") != beside {
				continue
			}
			for _, p := range r.Profiles {
				key := profiledKey{r.Scenario, table.RowName(r.Target), p.Load, p.Kind, p.Process}
				if taken[key] == nil {
					order = append(order, key)
				}
				taken[key] = append(taken[key], p)
			}
		}
		for _, key := range order {
			if have[key] {
				continue
			}
			p := addUp(run, key, taken[key])
			p.Beside, have[key] = beside, p.Flame != nil
			out = append(out, p)
		}
	}
	return out
}

// addUp makes one of the profiles of several trials.
func addUp(run fs.FS, key profiledKey, taken []result.Profile) Profiled {
	out := Profiled{Scenario: key.scenario, Target: key.target, Load: key.load, Kind: key.kind,
		Process: key.process}
	var all []*pprof.Profile
	for _, t := range taken {
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
	total, unit := profile.Total(sum)
	if total <= 0 {
		out.Missing = append(out.Missing, "it saw nothing: the process was idle, or its tool blind")
		return out
	}
	out.Trials, out.Unit, out.Samples = len(all), unit, profile.Samples(sum)
	out.Tool, out.Notes = profile.Tool(sum), profile.Notes(sum)
	out.Top, out.Flame = profile.Top(sum, topRows), profile.Flame(sum)
	return out
}

// what names a profile within its scenario.
func (p *Profiled) what() string {
	name := p.Target
	if p.Process != "" {
		name += ", " + p.Process
	}
	return fmt.Sprintf("%s, %s at %s", name, kindName(p.Kind), p.Load)
}

// about says what a profile rests on.
func (p *Profiled) about() string {
	words := []string{p.Tool}
	if p.Samples >= 0 {
		words = append(words, unit.Plural(p.Samples, "sample"))
	}
	words = append(words, fmt.Sprintf("%s in %s", unit.Duration(float64(p.DurationNs)),
		unit.Plural(p.Trials, "trial")))
	if p.Beside {
		words[len(words)-1] += " beside the comparison"
	}
	return strings.Join(words, ", ")
}

// kindName is a kind in words.
func kindName(kind string) string {
	if name, ok := map[string]string{profile.CPU: "CPU", profile.Alloc: "allocation",
		profile.Lock: "waiting for locks", profile.OffCPU: "off-CPU"}[kind]; ok {
		return name
	}
	return kind
}
