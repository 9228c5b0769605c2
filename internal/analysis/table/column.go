package table

import (
	"strings"

	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
)

// Column says what its cells are, and how a renderer sets them.
type Column struct {
	Key    string // stable name for programs: "peak/throughput"
	Role   Role
	Group  Group
	Label  string // what the quantity is called: "req/s", "p99"
	Unit   string // base unit of Cell.Value: "1/s", "ns", "B", "J", "1"; empty for text
	Weight int    // 0 stays; a narrow terminal leaves out the highest first

	Waits      bool    // response times of a closed load, which wait for the service
	Versus     Versus  // what ratios refer to
	Confidence float64 // of widths
	Effect     float64 // of numbers of blocks
}

// Role says what the cells of a column are.
type Role int

// Roles of columns.
const (
	RoleNumber Role = iota
	RoleWord
	RoleName   // of the row
	RoleTier   //
	RoleWidth  // of the interval of the column before it
	RoleRatio  // of the column before it, or of what Label says
	RoleArms   // the ratio of arm b to arm a
	RoleBlocks // how many are needed for Effect
)

// Weights of columns.
const (
	Essential = 0
	Detail    = 1
	Extra     = 2
)

// Group is what adjacent columns have in common.
type Group struct {
	Kind  GroupKind
	Load  string // of GroupLoad and GroupCost
	Title string // of GroupLoad: the load in words, "peak (closed, 64 connections)"
}

// GroupKind says what the columns of a group are about.
type GroupKind int

// Kinds of groups.
const (
	GroupNone GroupKind = iota
	GroupLoad           // what was measured under a load
	GroupCost           // what answering a load cost
	GroupStart
	GroupArtifact
)

// Heading is what stands over the columns of the group: "peak (closed, 64 connections)".
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

// Short is the same in a word, for renderers without spanning headings: "peak".
func (g Group) Short() string {
	switch g.Kind {
	case GroupLoad:
		return g.Load
	case GroupCost:
		return "cost"
	}
	return ""
}

// Align is how the column's cells are set.
func (c Column) Align() format.Align {
	switch c.Role {
	case RoleWord, RoleName:
		return format.Left
	case RoleTier:
		return format.Center
	}
	return format.Right
}

// Heading is what stands over the column: "p99 ratio".
func (c Column) Heading() string {
	switch {
	case c.Role == RoleTier:
		return "tier"
	case c.Role == RoleName:
		return "target"
	case c.Role == RoleWidth:
		return "±" + Confidence(c.Confidence).String()
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

// FullHeading is the heading with its group's word, for renderers without spanning headings.
func (c Column) FullHeading() string {
	return strings.TrimSpace(c.Group.Short() + " " + c.Heading())
}

// Title is what stands over the table; empty for the comparison of the only scenario.
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
