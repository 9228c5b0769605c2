package table

import (
	"fmt"
	"strings"

	"prony/internal/pattern"
	"prony/internal/result"
	"prony/internal/unit"
)

// head is the line over everything: what ran, how often, on what. Versions of tools stand on a line
// of their own, because a line that wraps is not read.
func (s *Study) head() string {
	targets, blocks := s.Extent()
	extent := unit.Plural(targets, "target") + " × " + unit.Plural(blocks, "block")
	if len(s.Records) == 0 {
		if targets == 0 {
			return "no records"
		}
		return "no records of " + extent
	}
	all := func(of func(*result.Record) string) string {
		return strings.Join(said(s.Records, of), " + ")
	}
	parts := []string{all(func(r *result.Record) string { return r.Suite })}
	if c := all(func(r *result.Record) string { return r.Contract }); c != "" {
		parts = append(parts, "contract "+c)
	}
	seeds := all(func(r *result.Record) string { return fmt.Sprint(r.Provenance.Seed) })
	parts = append(parts, extent, "seed "+seeds, hostLine(s.Records[0].Provenance))
	return strings.Join(parts, " · ")
}

// hostLine is the machine in a few words: "2 cores, Linux 6.18".
func hostLine(p result.Provenance) string {
	words := []string{unit.Plural(p.Cores, "core")}
	if p.OS != "" || p.Kernel != "" {
		words = append(words, strings.TrimSpace(osName(p.OS)+" "+p.Kernel))
	}
	return strings.Join(words, ", ")
}

func osName(goos string) string {
	if goos == "" {
		return ""
	}
	return strings.ToUpper(goos[:1]) + goos[1:]
}

var versionIn = pattern.New(`\d+(\.\d+)+\S*|\d+`)

// moves tells whether another version of a tool could move a target's numbers: a compiler or a
// runtime could, what only fetches and packs (npm, mvn) could not.
func moves(tool string, t result.Target) bool {
	language, runtime := strings.ToLower(t.Language), strings.ToLower(t.Runtime)
	switch tool {
	case language, runtime:
		return true
	case "java":
		return runtime == "jvm"
	case "native-image":
		return language == "java" && runtime == "native"
	case "cargo":
		return language == "rust"
	}
	return false
}
