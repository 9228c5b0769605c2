package service

import (
	"slices"
	"strconv"
	"strings"

	"prony/internal/pattern"
)

var (
	// versionWord is the first version in what a tool prints: "go1.26.8", "v20.20.2", "17.0.15".
	versionWord = pattern.New(`\b(?:go|v)?(\d+(?:\.\d+)*)`)
	// colour is an escape sequence of ECMA-48 8.3.117: Maven prints its name in bold even into a
	// pipe, and the 1 of ESC[1m would be taken for its version.
	colour = pattern.New(`\x1b\[[0-9;]*m`)
)

// versionIn finds the version in a tool's output, or "".
func versionIn(output string) string {
	match := versionWord.FindStringSubmatch(colour.ReplaceAllString(output, ""))
	if match == nil {
		return ""
	}
	return match[1]
}

// parseVersion reads dotted numbers.
func parseVersion(text string) ([]int, bool) {
	var parts []int
	for word := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, false
		}
		parts = append(parts, int(n))
	}
	return parts, true
}

// compareVersions orders dotted numbers, a missing part counting as 0: 25 equals 25.0 and comes
// before 25.0.1. What is no version comes before all.
func compareVersions(a, b string) int {
	left, _ := parseVersion(a)
	right, _ := parseVersion(b)
	n := max(len(left), len(right))
	return slices.Compare(padded(left, n), padded(right, n))
}

func padded(parts []int, n int) []int {
	return append(slices.Clone(parts), make([]int, n-len(parts))...)
}
