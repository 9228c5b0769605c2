package tidy

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// decisionIndex lists all decisions.
const decisionIndex = "docs/decisions/README.md"

var (
	decisionTitle = regexp.MustCompile(`^# (\d+)\. (\S.*)$`)
	// The status of a decision, and the date of its first commit.
	decisionStatus = regexp.MustCompile(`^\*\*Status:\*\* (accepted|superseded (?:in part )?by ` +
		`(?:\[\d+\]\([^)]+\)(?:, | and )?)+), (\d{4}-\d\d-\d\d)\.$`)
	supersedes = regexp.MustCompile(`\[(\d+)\]\(([^)]+)\)`)
)

// findIndex compares the index of decisions with the pages, both ways: number, title, status, date.
func findIndex(t tree) []problem {
	var problems []problem
	index := map[string]int{} // line of each row
	for i, line := range strings.Split(t[decisionIndex], "\n") {
		if strings.HasPrefix(line, "| [") {
			index[line] = i + 1
		}
	}
	for _, name := range t.glob("docs/decisions/*.md") {
		if name == decisionIndex {
			continue
		}
		row, err := decisionRow(t, name)
		if err != nil {
			problems = append(problems, problem{name, 0, err.Error()})
			continue
		}
		if index[row] == 0 {
			problems = append(problems, problem{decisionIndex, 0, "lacks the line " + row})
		}
		delete(index, row)
	}
	for row, line := range index {
		problems = append(problems, problem{decisionIndex, line, "agrees with no page: " + row})
	}
	return problems
}

// decisionRow returns the index's line of a decision, from its page.
func decisionRow(t tree, name string) (string, error) {
	base := path.Base(name)
	lines := strings.SplitN(t[name], "\n", 4)
	if len(lines) < 4 {
		return "", fmt.Errorf("has no title and status")
	}
	title := decisionTitle.FindStringSubmatch(lines[0])
	number := strings.TrimLeft(strings.SplitN(base, "-", 2)[0], "0")
	if title == nil || title[1] != number {
		return "", fmt.Errorf("does not begin with the title '# %s. …'", number)
	}
	status := decisionStatus.FindStringSubmatch(lines[2])
	if status == nil {
		return "", fmt.Errorf("has no third line such as '**Status:** accepted, 2026-11-21.' or " +
			"'**Status:** superseded by [12](0012-x.md), 2026-11-21.'")
	}
	for _, by := range supersedes.FindAllStringSubmatch(status[1], -1) {
		_, there := t["docs/decisions/"+by[2]]
		if !there || !strings.HasPrefix(strings.TrimLeft(by[2], "0"), by[1]+"-") {
			return "", fmt.Errorf("is superseded by %s, which is no decision", by[0])
		}
	}
	return fmt.Sprintf("| [%s](%s) | %s | %s | %s |", number, base, title[2], status[1],
		status[2]), nil
}

func TestDecisionIndex(t *testing.T) {
	const at, head = "docs/decisions/", "| number | decision | status | date |\n|---|---|---|---|\n"
	const first = "| [1](0001-go.md) | Use Go | accepted | 2026-01-02 |\n"
	const page = "# 1. Use Go\n\n**Status:** accepted, 2026-01-02.\n\n## Context\n"
	const second = "# 2. Use C\n\n**Status:** superseded in part by [1](0001-go.md) and " +
		"[2](0002-c.md), 2026-01-03.\n"
	const both = first + "| [2](0002-c.md) | Use C | superseded in part by [1](0001-go.md) and " +
		"[2](0002-c.md) | 2026-01-03 |\n"
	for _, row := range []struct {
		files tree
		want  []string
	}{
		{tree{at + "0001-go.md": page, decisionIndex: head + first}, nil},
		{tree{at + "0001-go.md": page, at + "0002-c.md": second, decisionIndex: head + both}, nil},
		{tree{at + "0001-go.md": page, at + "0002-c.md": second, decisionIndex: head + first},
			[]string{decisionIndex + ": lacks the line | [2](0002-c.md) | Use C | superseded"}},
		{tree{at + "0001-go.md": page, decisionIndex: head + both},
			[]string{decisionIndex + ":4: agrees with no page: | [2]"}},
		{tree{at + "0001-go.md": strings.Replace(page, "accepted", "superseded by [2](0002-c.md)",
			1), decisionIndex: head},
			[]string{at + "0001-go.md: is superseded by [2](0002-c.md), which is no decision"}},
		{tree{at + "0001-go.md": strings.Replace(page, "02.", "02", 1), decisionIndex: head},
			[]string{at + "0001-go.md: has no third line"}},
		{tree{at + "0002-go.md": page, decisionIndex: head},
			[]string{at + "0002-go.md: does not begin with the title '# 2."}},
		{tree{at + "0001-go.md": "# 1. Go\n", decisionIndex: head},
			[]string{at + "0001-go.md: has no title and status"}},
	} {
		red(t, findIndex, row.files, row.want...)
	}
}
