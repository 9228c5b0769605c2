package table

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/units"
	"prony.example/load/network"
	"prony.example/record"
)

// aspect is a part of the method that must be equal for numbers to be comparable. The idea is
// benchstat's: if a cell averages unlike runs, a footnote names what varies in it.
type aspect struct {
	name  string
	value func(*record.Record) string
}

// aspects are the properties that any two compared trials must share.
var aspects = []aspect{
	{"planHash", func(r *record.Record) string { return units.Hash(r.Provenance.PlanHash) }},
	{"limits in force", func(r *record.Record) string {
		return list(wording.Limits(r.Limits.InForce))
	}},
	{"limits asked", func(r *record.Record) string {
		return fmt.Sprintf("%g CPUs, %s", r.Limits.CPUs, units.Bytes(float64(r.Limits.MemoryBytes)))
	}},
	{"machine", func(r *record.Record) string {
		p := r.Provenance
		return fmt.Sprintf("%s, %d cores, governor %s", p.CPUModel, p.Cores, p.Governor)
	}},
	{"kernel", func(r *record.Record) string { return r.Provenance.Kernel }},
	{"prony", func(r *record.Record) string { return r.Provenance.Prony }},
	{"engine", func(r *record.Record) string {
		return loadsText(r, func(l *record.Load) string { return l.Generator.Engine })
	}},
	{"load", func(r *record.Record) string {
		return loadsText(r, func(l *record.Load) string {
			if l.Search != nil { // the steps of a search are as long as their rates require
				return fmt.Sprintf("%s, %s, %d threads", l.Kind(), l.Search.SLO, l.Threads)
			}
			connections := fmt.Sprintf(" %d connections,", l.Connections)
			if r.Target.Matrix.Connections > 0 {
				connections = "" // swept has the connections
			}
			return fmt.Sprintf("%s,%s %d threads, %g s", l.Model, connections, l.Threads,
				float64(l.WindowNs)/1e9)
		})
	}},
	{sweep, func(r *record.Record) string {
		var items []string
		s := r.Target.Matrix
		if s.Connections > 0 {
			items = append(items, units.Plural(s.Connections, "connection"))
		}
		if s.BodyBytes > 0 {
			items = append(items, "bodies of "+units.Bytes(float64(s.BodyBytes)))
		}
		return strings.Join(items, ", ")
	}},
}

// sweep is the aspect that differs on purpose.
const sweep = "sweep"

// ownAspects are the properties that trials of one target must share, in addition to aspects.
var ownAspects = []aspect{
	{"artifact", func(r *record.Record) string { return units.Hash(r.Artifact.SHA256) }},
	{"service arguments", func(r *record.Record) string {
		return strings.Join(r.Provenance.ServiceArgs, " ")
	}},
	{"framework version", func(r *record.Record) string { return r.Target.Version }},
	{"commit", func(r *record.Record) string { return units.Hash(r.Provenance.Commit) }},
	{ToolsAspect, func(r *record.Record) string { return toolsText(r) }},
}

// differences returns a note for each aspect in which a target's own trials vary.
func differences(trials []*record.Record) (out []Note) {
	for _, a := range slices.Concat(aspects, ownAspects) {
		if vs := distinct(trials, a.value); len(vs) > 1 {
			out = append(out, NoteOf(NoteVaries, a.name, Differing(vs)))
		}
	}
	return out
}

// unlikeRows returns the aspects in which rows differ although each row is consistent: the numbers
// of such rows are not comparable, though each may be right.
func (sc *Scenario) unlikeRows() (out []Note) {
	for _, a := range aspects {
		parts := sc.parted(a.value)
		if len(parts) < 2 {
			continue
		}
		if a.name == sweep {
			out = append(out, NoteOf(NoteRowsSweep, parts))
		} else {
			out = append(out, NoteOf(NoteRowsVary, a.name, parts))
		}
	}
	return append(out, sc.unlikeTools()...)
}

// unlikeTools names tools whose versions differ between rows of one language. For example, an image
// has its own tools.
func (sc *Scenario) unlikeTools() (out []Note) {
	var names []string
	for _, t := range sc.Targets {
		for _, r := range t.Used {
			names = slices.AppendSeq(names, maps.Keys(r.Provenance.Tools))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		parts := sc.parted(func(r *record.Record) string {
			if v := versionIn.FindString(r.Provenance.Tools[name]); moves(name, r.Target) {
				return v
			}
			return ""
		})
		parts = slices.DeleteFunc(parts, func(p Sharing) bool { return p.Value == nothing })
		if len(parts) > 1 {
			out = append(out, NoteOf(NoteToolsVary, name, parts))
		}
	}
	return out
}

// parted groups the consistent rows by their value, in order.
func (sc *Scenario) parted(value func(*record.Record) string) (parts Shared) {
	for _, t := range sc.Targets {
		vs := distinct(t.Used, value)
		if len(vs) != 1 {
			continue // no trial, or the row's own footnote has the values
		}
		index := slices.IndexFunc(parts, func(p Sharing) bool { return p.Value == vs[0] })
		if index < 0 {
			index, parts = len(parts), append(parts, Sharing{Value: vs[0]})
		}
		parts[index].Rows = append(parts[index].Rows, t.Name)
	}
	return parts
}

// nothing is the value of an aspect that a record does not have.
const nothing = "none"

// distinct returns the different values, in the order of the trials.
func distinct(trials []*record.Record, value func(*record.Record) string) []string {
	return Distinct(trials, func(r *record.Record) string { return cmp.Or(value(r), nothing) })
}

// said returns the different values that are not empty.
func said[T any](items []T, value func(T) string) []string {
	return slices.DeleteFunc(Distinct(items, value), func(v string) bool { return v == "" })
}

// Distinct returns the different values of a list's members, in the order of the list.
func Distinct[T any, V comparable](items []T, value func(T) V) (out []V) {
	for _, x := range items {
		out = AddNew(out, value(x))
	}
	return out
}

// AddNew appends the values that a list does not have yet.
func AddNew[T comparable](to []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(to, x) {
			to = append(to, x)
		}
	}
	return to
}

// loadsText joins a value of all loads of a record, or returns it once if all are equal.
func loadsText(r *record.Record, value func(*record.Load) string) string {
	var vs []string
	for i := range r.Loads {
		vs = append(vs, value(&r.Loads[i]))
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

// Method describes how trials were measured, as a list of aspects. It excludes what was measured
// (target, artifact, commit) and what is random or repeated (seed, blocks), because comparisons
// vary these on purpose.
type Method struct {
	Aspects []Aspect
	// Partial: every trial ended early, so the loads that they lack are unknown.
	Partial bool
}

// Aspect is one property of a method. Numbers are comparable if all binding aspects are equal; the
// other aspects are reported because they may explain a difference.
type Aspect struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // UnknownValue if no record has it; all values if trials vary
	Binding bool   `json:"binding"`
}

// UnknownValue is the value of an aspect that no record has.
const UnknownValue = "unknown"

// Difference is an aspect in which two methods differ.
type Difference struct {
	Aspect string `json:"aspect"`
	A      string `json:"a"`
	B      string `json:"b"`
}

func (d Difference) String() string { return fmt.Sprintf("%s: %s against %s", d.Aspect, d.A, d.B) }

// MethodOf reads the method from trials of one target under one scenario. Requests are the
// scenario's requests from the head of the run; nil means unknown.
func MethodOf(trials []*record.Record, requests []string) Method {
	m := Method{Partial: !slices.ContainsFunc(trials, func(r *record.Record) bool {
		return r.Failure == nil
	})}
	add := func(binding bool, name string, value func(*record.Record) string) {
		m.Aspects = append(m.Aspects, Aspect{name, agreed(trials, value), binding})
	}
	for _, a := range methodAspects {
		add(true, a.name, a.value)
	}
	if RepeatOf(trials...) != inBlocks { // keeps fingerprints of trials in blocks stable
		m.Aspects = append(m.Aspects, Aspect{interleaving, "slices in starts", true})
	}
	m.Aspects = append(m.Aspects, Aspect{"requests",
		cmp.Or(strings.Join(requests, ", "), UnknownValue), true})
	for _, name := range loadNames(trials) {
		for _, a := range loadAspects {
			add(true, name+" "+a.name, func(r *record.Record) string {
				if l := loadOf(r, name); l != nil {
					return a.value(l)
				}
				return ""
			})
		}
	}
	for _, a := range toldAspects {
		add(false, a.name, a.value)
	}
	return m
}

// methodAspects are binding. The number of cores counts, not which cores.
var methodAspects = []aspect{
	{"contract", func(r *record.Record) string { return r.Contract }},
	{"scenario", func(r *record.Record) string { return r.Scenario }},
	{"requests in full, timeout and warm-up", func(r *record.Record) string {
		return r.Provenance.ScenarioHash
	}},
	{"variant", func(r *record.Record) string {
		along := slices.Clone(r.Provenance.VariantEnv)
		for _, a := range r.Provenance.Agents {
			along = append(along, a.Source+" "+units.Hash(a.SHA256))
		}
		return cmp.Or(strings.Join(along, " "), "nothing")
	}},
	{"what is observed", func(r *record.Record) string {
		return cmp.Or(strings.Join(r.Instruments, ", "), "samples alone")
	}},
	{"driver", func(r *record.Record) string { return cmp.Or(r.Target.Driver, "prony") }},
	{"launcher", func(r *record.Record) string {
		if r.Target.URL != "" {
			return "none, it ran already"
		}
		return cmp.Or(r.Target.Launcher, "process")
	}},
	{"limits asked", func(r *record.Record) string {
		home := ""
		if n := len(r.Limits.TelemetryCores); n > 0 {
			home = fmt.Sprintf(", %d for the home", n)
		}
		if n := len(r.Limits.BackingCores); n > 0 {
			home += fmt.Sprintf(", %d for backing processes", n)
		}
		return fmt.Sprintf("%g CPUs, %s, %d cores, load on %d%s", r.Limits.CPUs,
			units.Bytes(float64(r.Limits.MemoryBytes)), len(r.Limits.ServiceCores),
			len(r.Limits.LoadCores), home)
	}},
	{"limits in force", func(r *record.Record) string {
		if len(r.Loads) == 0 { // it can have failed before they were set
			return kinds(r.Limits.InForce)
		}
		return cmp.Or(kinds(r.Limits.InForce), "none")
	}},
	{"processor", func(r *record.Record) string { return r.Provenance.CPUModel }},
	{"cores", func(r *record.Record) string { return fmt.Sprint(r.Provenance.Cores) }},
	{"governor", func(r *record.Record) string { return r.Provenance.Governor }},
	{"idle cores", func(r *record.Record) string { return cmp.Or(r.Provenance.Idle, "halt") }},
	{"hypervisor", func(r *record.Record) string { return fmt.Sprint(r.Provenance.Hypervisor) }},
	{"kernel", func(r *record.Record) string {
		return r.Provenance.OS + " " + numbered(r.Provenance.Kernel, 2)
	}},
	{"prony", func(r *record.Record) string { return compatible(r.Provenance.Prony) }},
}

// ToolsAspect is the name of the aspect with the tools that compiled or ran the service.
const ToolsAspect = "tools"

// toldAspects are not binding: they often differ and rarely matter.
var toldAspects = []aspect{
	{"kernel's build", func(r *record.Record) string { return r.Provenance.Kernel }},
	{"prony's build", func(r *record.Record) string { return r.Provenance.Prony }},
	{"suite's hash", func(r *record.Record) string { return units.Hash(r.Provenance.SuiteHash) }},
	{"company", func(r *record.Record) string {
		if r.SideBySide == nil {
			return "alone"
		}
		return fmt.Sprintf("beside %s, freeze %s", units.Plural(len(r.SideBySide.With), "target"),
			r.SideBySide.Freeze)
	}},
	{"TLS", func(r *record.Record) string {
		return strings.Join(said(r.Loads, func(l record.Load) string { return l.TLS }), " | ")
	}},
	{"precedence", func(r *record.Record) string {
		return strings.Join(said(r.Loads, func(l record.Load) string {
			return l.Generator.Priority
		}), " | ")
	}},
	{ToolsAspect, func(r *record.Record) string { return toolsText(r) }},
}

// loadAspect is a property of one load. A rate that is a share of the target's own peak is named as
// that share, because in requests/s it is a result, like the rate that a search found.
type loadAspect struct {
	name  string
	value func(*record.Load) string
}

var loadAspects = []loadAspect{
	{"model", (*record.Load).Kind},
	{"protocol", func(l *record.Load) string { return cmp.Or(l.Protocol, "HTTP/1.1") }},
	{"generator", func(l *record.Load) string { return cmp.Or(l.Driver, "prony") }},
	{"connections", func(l *record.Load) string { return fmt.Sprint(l.Connections) }},
	{"threads", func(l *record.Load) string {
		if n := len(l.Generators); n > 0 {
			return fmt.Sprintf("%d of %d generators", l.Threads, n)
		}
		return fmt.Sprint(l.Threads)
	}},
	{"rate", func(l *record.Load) string {
		if l.Search != nil {
			return "the highest that keeps " + l.Search.SLO
		}
		if l.Model != record.Open || l.RateOf != "" {
			return cmp.Or(l.RateOf, "as answers come")
		}
		return fmt.Sprintf("%g/s", l.RatePerS)
	}},
	{"arrivals", func(l *record.Load) string { return cmp.Or(l.Arrivals, "as answers come") }},
	{"shape", func(l *record.Load) string { return cmp.Or(l.Shape, "steady") }},
	{"users", func(l *record.Load) string { return cmp.Or(l.Users, "one a connection") }},
	{"think", func(l *record.Load) string { return cmp.Or(l.Think, "no pause") }},
	{"churn", func(l *record.Load) string { return fmt.Sprint(l.Churn) }},
	{"streams", func(l *record.Load) string { return fmt.Sprint(max(l.Streams, 1)) }},
	{"network", func(l *record.Load) string {
		if l.Network == nil {
			return network.None
		}
		return network.FromNs(l.Network.DelayNs, l.Network.JitterNs).String()
	}},
	{"window", func(l *record.Load) string {
		if l.Requests > 0 { // its end is a result
			return fmt.Sprintf("%d requests", l.Requests)
		}
		if l.Search != nil { // the steps of a search are as long as their rates require
			return fmt.Sprintf("%g s of steps", float64(l.Search.BudgetNs)/1e9)
		}
		return fmt.Sprintf("%g s", float64(l.WindowNs)/1e9)
	}},
	{"engine", func(l *record.Load) string { return cmp.Or(l.Generator.Engine, UnknownValue) }},
	{"pacing", func(l *record.Load) string {
		kind, _, _ := strings.Cut(l.Generator.Pacing, ":") // the rest was tuned at run time
		return cmp.Or(kind, UnknownValue)
	}},
}

// Fingerprint returns a short hash of the binding aspects, equal if numbers are comparable.
func (m Method) Fingerprint() string {
	h := sha256.New()
	for _, a := range m.Aspects {
		if a.Binding {
			fmt.Fprintf(h, "%q=%q\n", a.Name, a.Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:8]
}

// Differences lists the aspects in which two methods differ: binding ones, and those that are only
// reported. An aspect that one side's (older) records lack cannot be binding.
func (m Method) Differences(second Method) (binding, reported []Difference) {
	for _, name := range m.names(second) {
		a, binds := m.value(name)
		b, bindsToo := second.value(name)
		switch {
		case a == b:
		case (binds || bindsToo) && a != UnknownValue && b != UnknownValue:
			binding = append(binding, Difference{name, a, b})
		default:
			reported = append(reported, Difference{name, a, b})
		}
	}
	return binding, reported
}

// names returns the aspects of both methods, each once. A load that only one method has is
// represented by its model alone, and left out if the trials of the other one ended early.
func (m Method) names(second Method) []string {
	names := Distinct(slices.Concat(m.Aspects, second.Aspects), func(a Aspect) string {
		return a.Name
	})
	return slices.DeleteFunc(names, func(name string) bool {
		a, _ := m.value(name)
		b, _ := second.value(name)
		return (a == noLoad || b == noLoad) && !strings.HasSuffix(name, " model") ||
			a == noLoad && m.Partial || b == noLoad && second.Partial
	})
}

// interleaving is the aspect of how targets took turns. In a start, a target has a shorter warm-up,
// works in a fresh copy of its files, and shares the memory with other targets.
const interleaving = "interleaving"

// noLoad is the value of an aspect of a load that the other side does not have.
const noLoad = "not offered"

func (m Method) value(name string) (value string, binding bool) {
	for _, a := range m.Aspects {
		if a.Name == name {
			return a.Value, a.Binding
		}
	}
	if name == interleaving {
		return "whole trials in blocks", true
	}
	return noLoad, false
}

// agreed returns the common value of all trials, all values joined if they vary, or UnknownValue.
func agreed(trials []*record.Record, value func(*record.Record) string) string {
	vs := said(trials, func(r *record.Record) string { return strings.TrimSpace(value(r)) })
	slices.Sort(vs)
	return cmp.Or(strings.Join(vs, " | "), UnknownValue)
}

func loadNames(trials []*record.Record) []string {
	var names []string
	for _, r := range trials {
		for i := range r.Loads {
			names = AddNew(names, r.Loads[i].Name)
		}
	}
	return names
}

// kinds returns which limits the kernel enforces and how, without cores and amounts: "affinity,
// cpuset (cgroup v1), memory (cgroup v1)".
func kinds(inForce []record.Limit) string {
	var out []string
	for _, l := range inForce {
		out = append(out, wording.LimitKind(l))
	}
	return list(out)
}

// toolsText lists the tools that compiled or ran the targets of records, with versions: "go 1.26.8,
// native-image 25.0.2 (GraalVM CE)".
func toolsText(records ...*record.Record) string {
	var words []string
	for _, r := range records {
		for name, version := range r.Provenance.Tools {
			v := versionIn.FindString(version)
			if name == "native-image" { // with its edition
				v = version
			}
			if v != "" && moves(name, r.Target) {
				words = AddNew(words, name+" "+v)
			}
		}
	}
	return list(words)
}

// numbered returns the first n numbers of a version: "6.18.44-1" shortened to two is "6.18".
func numbered(version string, n int) string {
	parts := strings.SplitN(version, ".", n+1)
	return strings.Join(parts[:min(n, len(parts))], ".")
}

// compatible returns the binding part of Prony's version: releases that may move a number raise the
// first number, or the second one before 1.0. It does not distinguish builds between releases.
func compatible(version string) string {
	v, isVersion := strings.CutPrefix(strings.TrimSpace(version), "v")
	switch {
	case version == "":
		return ""
	case !isVersion:
		return "between releases"
	case strings.HasPrefix(v, "0."):
		return "v" + numbered(v, 2)
	}
	return "v" + numbered(v, 1)
}
