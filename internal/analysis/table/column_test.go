package table

import (
	"testing"

	"prony.example/internal/base/format"
	"prony.example/record"
)

// TestHeadings checks the headings of columns, with and without their group.
func TestHeadings(t *testing.T) {
	peak := Group{GroupLoad, "peak", "peak (closed, 64 connections)"}
	cost, start := Group{Kind: GroupCost, Load: "peak"}, Group{Kind: GroupStart}
	for _, row := range []struct {
		of                    Column
		group, heading, alone string
		align                 format.Align
	}{
		{Column{Role: RoleTier}, "", "tier", "tier", format.Center},
		{Column{Role: RoleName}, "", "target", "target", format.Left},
		{Column{Role: RoleWord, Label: "process"}, "", "process", "process", format.Left},
		{Column{Group: peak, Label: "req/s"}, peak.Title, "req/s", "peak req/s", format.Right},
		{Column{Group: peak, Label: "p99", Waits: true}, peak.Title, "p99 closed",
			"peak p99 closed", format.Right},
		{Column{Group: peak, Role: RoleWidth, Confidence: 0.995}, peak.Title, "99.5 % CI",
			"peak 99.5 % CI", format.Right},
		{Column{Group: peak, Role: RoleRatio, Versus: Versus{VersusBaseline, "b"}}, peak.Title,
			"vs b", "peak vs b", format.Right},
		{Column{Group: peak, Role: RoleRatio, Label: "p99", Versus: Versus{Kind: VersusBare}},
			peak.Title, "p99 ratio", "peak p99 ratio", format.Right},
		{Column{Role: RoleArms}, "", "b over a", "b over a", format.Right},
		{Column{Role: RoleBlocks, Label: "blocks", Effect: 0.03}, "", "blocks for 3.0 %",
			"blocks for 3.0 %",
			format.Right},
		{Column{Group: cost, Label: "RSS"}, "cost at peak", "RSS", "cost RSS", format.Right},
		{Column{Group: start, Label: "ready"}, "start", "ready", "ready", format.Right},
		{Column{Group: Group{Kind: GroupArtifact}, Label: "size"}, "artifact", "size", "size",
			format.Right},
	} {
		c := row.of
		if c.Group.Heading() != row.group || c.Heading() != row.heading ||
			c.FullHeading() != row.alone || c.Align() != row.align {
			t.Errorf("%+v: %q, %q, %q, set %v; want %q, %q, %q, set %v", c, c.Group.Heading(),
				c.Heading(), c.FullHeading(), c.Align(), row.group, row.heading, row.alone,
				row.align)
		}
	}
}

// TestHeadUnderATitle checks that a head leaves out a suite that its title names, but not one with
// the same beginning.
func TestHeadUnderATitle(t *testing.T) {
	host := &record.Provenance{Cores: 2}
	const rest = "1 target × 3 blocks · seed 7 · 2 cores"
	for _, row := range []struct {
		suites      []string
		title, want string
	}{
		{[]string{"canonical"}, "canonical", rest},
		{[]string{"canonical"}, "Nightly", "canonical · " + rest},
		{[]string{"canonical"}, "canonical · 1 target × 3 blocks", "canonical · " + rest},
		{[]string{"a", "b"}, "a", "a + b · " + rest},
		{nil, "", rest},
	} {
		h := Head{Suites: row.suites, Targets: 1, Blocks: 3, Seeds: []string{"7"}, Host: host}
		if got := h.Under(row.title).String(); got != row.want {
			t.Errorf("%q under %q is %q, want %q", row.suites, row.title, got, row.want)
		}
	}
}
