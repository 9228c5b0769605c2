package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"prony/internal/result"
	"prony/internal/unit"
)

// aspect is a part of the method that must be equal for numbers to be comparable. The idea is
// benchstat's: when a cell silently averages unlike runs, a footnote names what varies in it.
type aspect struct {
	name string
	of   func(*result.Record) string
}

// aspects are what any two compared trials must share.
var aspects = []aspect{
	{"planHash", func(r *result.Record) string { return unit.Hash(r.Provenance.PlanHash) }},
	{"limits in force", inForce}, {"company", manner},
	{"limits asked", func(r *result.Record) string {
		return fmt.Sprintf("%g CPUs, %s", r.Limits.CPUs, unit.Bytes(float64(r.Limits.MemoryBytes)))
	}},
	{"machine", func(r *result.Record) string {
		p := r.Provenance
		return fmt.Sprintf("%s, %d cores, governor %s", p.CPUModel, p.Cores, p.Governor)
	}},
	{"kernel", func(r *result.Record) string { return r.Provenance.Kernel }},
	{"prony", func(r *result.Record) string { return r.Provenance.Prony }},
	{"engine", func(r *result.Record) string {
		return loadsText(r, func(l *result.Load) string { return l.Generator.Engine })
	}},
	{"load", func(r *result.Record) string {
		return loadsText(r, func(l *result.Load) string {
			if l.Search != nil { // whose steps are as long as their rates ask for
				return fmt.Sprintf("%s, %s, %d threads", l.Kind(), l.Search.SLO, l.Threads)
			}
			connections := fmt.Sprintf(" %d connections,", l.Connections)
			if r.Target.Swept.Connections > 0 {
				connections = "" // swept says it
			}
			return fmt.Sprintf("%s,%s %d threads, %g s", l.Model, connections, l.Threads,
				float64(l.WindowNs)/1e9)
		})
	}},
	{sweep, func(r *result.Record) string {
		var of []string
		s := r.Target.Swept
		if s.Connections > 0 {
			of = append(of, unit.Plural(s.Connections, "connection"))
		}
		if s.BodyBytes > 0 {
			of = append(of, "bodies of "+unit.Bytes(float64(s.BodyBytes)))
		}
		return strings.Join(of, ", ")
	}},
}

// sweep is the aspect that differs because somebody asked for it.
const sweep = "sweep"

// ownAspects are what trials of one target must share, beyond aspects.
var ownAspects = []aspect{
	{"artifact", func(r *result.Record) string { return unit.Hash(r.Artifact.SHA256) }},
	{"service arguments", func(r *result.Record) string {
		return strings.Join(r.Provenance.ServiceArgs, " ")
	}},
	{"framework version", func(r *result.Record) string { return r.Target.Version }},
	{"commit", func(r *result.Record) string { return unit.Hash(r.Provenance.Commit) }},
	{ToolsAspect, func(r *result.Record) string { return toolsText(r) }},
}

// differences says in what a target's own trials vary, a sentence each.
func differences(trials []*result.Record) []string {
	var out []string
	for _, a := range slices.Concat(aspects, ownAspects) {
		if vs := distinct(trials, a.of); len(vs) > 1 {
			out = append(out, fmt.Sprintf("varies in %s: %s", a.name, strings.Join(vs, " | ")))
		}
	}
	return out
}

// unlikeRows says in what rows differ where each row agrees with itself: the numbers of such rows
// are not comparable, though each may be right.
func (sc *Scenario) unlikeRows() []string {
	var out []string
	for _, a := range aspects {
		parts := sc.parted(a.of)
		if len(parts) < 2 {
			continue
		}
		what := "Rows vary in " + a.name + ", so they are not like for like"
		if a.name == sweep {
			what = "Rows sweep the load, as was asked"
		}
		out = append(out, what+": "+partsText(parts)+".")
	}
	return append(out, sc.unlikeTools()...)
}

// unlikeTools says where rows of one language were made or run by different versions of its tools:
// an image has its own.
func (sc *Scenario) unlikeTools() (out []string) {
	var names []string
	for _, t := range sc.Targets {
		for _, r := range t.Used {
			names = slices.AppendSeq(names, maps.Keys(r.Provenance.Tools))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		parts := sc.parted(func(r *result.Record) string {
			if v := versionIn.FindString(r.Provenance.Tools[name]); moves(name, r.Target) {
				return v
			}
			return ""
		})
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.value == nothing })
		if len(parts) > 1 {
			out = append(out, fmt.Sprintf("Rows vary in the version of %s, so that their "+
				"difference is also that: %s.", name, partsText(parts)))
		}
	}
	return out
}

// part is a value of an aspect, and the rows that have it.
type part struct {
	value string
	rows  []string
}

// parted are the values of rows that agree with themselves, in order.
func (sc *Scenario) parted(of func(*result.Record) string) (parts []part) {
	for _, t := range sc.Targets {
		vs := distinct(t.Used, of)
		if len(vs) != 1 {
			continue // no trial, or its own footnote says it
		}
		at := slices.IndexFunc(parts, func(p part) bool { return p.value == vs[0] })
		if at < 0 {
			at, parts = len(parts), append(parts, part{value: vs[0]})
		}
		parts[at].rows = append(parts[at].rows, t.Name)
	}
	return parts
}

// partsText lists them: "1.26.8 (a, b); 1.26.5 (c)".
func partsText(parts []part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s (%s)", p.value, unit.Few(p.rows, 3)))
	}
	return strings.Join(words, "; ")
}

// nothing is a value that a record does not have.
const nothing = "none"

// distinct is the different values, in the order of the trials.
func distinct(trials []*result.Record, of func(*result.Record) string) []string {
	return Distinct(trials, func(r *result.Record) string { return cmp.Or(of(r), nothing) })
}

// said are the different values that are not empty.
func said[T any](of []T, value func(T) string) []string {
	return slices.DeleteFunc(Distinct(of, value), func(v string) bool { return v == "" })
}

// Distinct are the different values of members of a list, in the order of the list.
func Distinct[T any, V comparable](of []T, value func(T) V) (out []V) {
	for _, x := range of {
		out = AddNew(out, value(x))
	}
	return out
}

// AddNew appends what a list does not have yet.
func AddNew[T comparable](to []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(to, x) {
			to = append(to, x)
		}
	}
	return to
}

// loadsText joins what each load of a record says, in one word when all say the same.
func loadsText(r *result.Record, of func(*result.Load) string) string {
	var vs []string
	for i := range r.Loads {
		vs = append(vs, of(&r.Loads[i]))
	}
	if len(slices.Compact(slices.Clone(vs))) == 1 {
		return vs[0]
	}
	return strings.Join(vs, " / ")
}

func list(words []string) string {
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}
