package table

import (
	"cmp"
	"fmt"
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
		var said []string // values in order of rows
		rows := map[string][]string{}
		for i := range sc.Targets {
			t := &sc.Targets[i]
			vs := distinct(t.Used, a.of)
			if len(vs) != 1 {
				continue // no trial, or its own footnote says it
			}
			if rows[vs[0]] == nil {
				said = append(said, vs[0])
			}
			rows[vs[0]] = append(rows[vs[0]], t.Name)
		}
		if len(said) < 2 {
			continue
		}
		var parts []string
		for _, v := range said {
			parts = append(parts, fmt.Sprintf("%s (%s)", v, unit.Few(rows[v], 3)))
		}
		what := "Rows vary in " + a.name + ", so they are not like for like"
		if a.name == sweep {
			what = "Rows sweep the load, as was asked"
		}
		out = append(out, what+": "+strings.Join(parts, "; ")+".")
	}
	return out
}

// distinct is the different values, in the order of the trials.
func distinct(trials []*result.Record, of func(*result.Record) string) []string {
	var vs []string
	for _, r := range trials {
		v := cmp.Or(of(r), "none")
		if !slices.Contains(vs, v) {
			vs = append(vs, v)
		}
	}
	return vs
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
