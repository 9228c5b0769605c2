package table

import (
	"strings"

	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record/metric"
)

// Column describes the cells of a column and how renderers align them.
type Column struct {
	Key    string // stable name for programs: "peak/throughput"
	Role   Role
	Group  Group
	Label  string // the name of the quantity: "req/s", "p99"
	Unit   string // base unit of Cell.Value: "1/s", "ns", "B", "J", "1"; empty for text
	Weight int    // 0: always shown; a narrow terminal omits the highest first

	Waits      bool    // response times of a closed load, which wait for the service
	Versus     Versus  // the references of ratios
	Confidence float64 // of widths
	Effect     float64 // of numbers of blocks
}

// Role describes what the cells of a column contain.
type Role int

// Roles of columns.
const (
	RoleNumber Role = iota
	RoleWord
	RoleName   // of the row
	RoleTier   //
	RoleWidth  // of the interval of the column before it
	RoleRatio  // of the column before it, or of the metric in Label
	RoleArms   // the ratio of arm b to arm a
	RoleBlocks // how many blocks are needed for Effect
)

// Weights of columns.
const (
	Essential = 0
	Detail    = 1
	Extra     = 2
)

// Group describes what adjacent columns have in common.
type Group struct {
	Kind  GroupKind
	Load  string // for GroupLoad and GroupCost
	Title string // for GroupLoad: the load in words, "peak (closed, 64 connections)"
}

// GroupKind is the subject of the columns of a group.
type GroupKind int

// Kinds of groups.
const (
	GroupNone GroupKind = iota
	GroupLoad           // measured under a load
	GroupCost           // the cost of answering a load
	GroupStart
	GroupArtifact
)

// Heading returns the heading of the group's columns: "peak (closed, 64 connections)".
func (g Group) Heading() string {
	switch g.Kind {
	case GroupLoad:
		return g.Title
	case GroupCost:
		return "cost at " + g.Load
	case GroupStart:
		return "start"
	case GroupArtifact:
		return "artifact"
	}
	return ""
}

// Short returns the heading in one word, for renderers without spanning headings: "peak".
func (g Group) Short() string {
	switch g.Kind {
	case GroupLoad:
		return g.Load
	case GroupCost:
		return "cost"
	}
	return ""
}

// Align returns the alignment of the column's cells.
func (c Column) Align() format.Align {
	switch c.Role {
	case RoleWord, RoleName:
		return format.Left
	case RoleTier:
		return format.Center
	}
	return format.Right
}

// Heading returns the column's heading: "p99 ratio".
func (c Column) Heading() string {
	switch {
	case c.Role == RoleTier:
		return "tier"
	case c.Role == RoleName:
		return "target"
	case c.Role == RoleWidth:
		return Confidence(c.Confidence).String() + " CI"
	case c.Role == RoleArms:
		return "b over a"
	case c.Role == RoleRatio && c.Label != "":
		return c.Label + " ratio"
	case c.Role == RoleRatio:
		return "vs " + c.Versus.String()
	case c.Role == RoleBlocks:
		return c.Label + " for " + units.Percent(c.Effect)
	case c.Waits:
		return c.Label + " closed"
	}
	return c.Label
}

// Percentile reports whether the column shows response times, or ratios of them.
func (c Column) Percentile() bool {
	return metric.Named(strings.TrimSuffix(c.Label, " ratio"), units.Ns).Quantile > 0
}

// FullHeading returns the heading with its group's word, for renderers without spanning headings.
func (c Column) FullHeading() string {
	return strings.TrimSpace(c.Group.Short() + " " + c.Heading())
}

// Title returns the table's title; empty for the comparison of the only scenario.
func (t Table) Title() string {
	title := map[string]string{
		OverheadKind: "Cost of agents and protocols",
		ToldKind:     "Telemetry volume",
		PartsKind:    "Resource usage by process",
		FloorKind:    "Noise floor: each target against itself",
	}[t.Kind]
	switch {
	case !t.OneOfSeveral:
		return title
	case title == "":
		return t.Scenario
	}
	return title + ", " + t.Scenario
}
