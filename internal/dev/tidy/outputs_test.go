package tidy

import (
	"fmt"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outputs are samples of what the program prints that no test prints again, because they were
// measured: their pages and first words.
var outputs = map[string][]string{
	"README.md":         {"new uses"},
	"docs/versus.md":    {"new uses", "prony: GET"},
	"docs/capacity.md":  {"capacity    925.5/s", "share    rate/s"},
	"docs/doctor.md":    {"This host is"},
	"docs/compare.md":   {"Spring against", "java-netty against"},
	"docs/load.md":      {"http://127.0.0.1:8080/hello"},
	"docs/query.md":     {"2026-11-22"},
	"docs/slices.md":    {"planned 27", "2 groups"},
	"docs/observing.md": {"trial observed"},
	"docs/profile.md":   {"go-nethttp +otel"},
	"docs/site.md":      {"1 run in the site"},
}

// outputNames are the words of samples that come from their services and machines.
var outputNames = []string{"old", "new", "intel_pstate", "powersave", "web", "content", "dockerd",
	"service_name", "config", "customers", "discovery", "gateway", "vets", "visits", "spring",
	"java", "netty", "gin", "pass", "go-nethttp", "go-nethttp-otel-sdk-tagged", "otel-sdk-tagged",
	"observed", "otel",
	"hello", "virtual", "runtime", "syscall", "internal", "linux", "time", "appendformat", "html"}

var (
	// verb separates the parts of a format that are printed as they are.
	verb         = regexp.MustCompile(`%[-+#0]*(\[\d+\])?[\d.*]*[a-zA-Z]|VALUE`)
	outputLetter = regexp.MustCompile(`[a-z]`)
	outputWord   = regexp.MustCompile(`\b[a-z][a-z_-]*[a-z]\b`)
)

// findOutputs requires that the words of these samples are in texts of the program, in its order.
func findOutputs(t tree) (problems []problem) {
	parts := printedParts(t)
	for _, page := range t.names() {
		found := 0
		for _, block := range blocks(t[page]) {
			if slices.ContainsFunc(outputs[page], func(start string) bool {
				return strings.HasPrefix(block.text, start)
			}) {
				found++
				for _, word := range unprinted(block.text, parts) {
					problems = append(problems, problem{page, block.number, fmt.Sprintf(
						"the sample has %q, which the program does not print here", word)})
				}
			}
		}
		if found != len(outputs[page]) {
			problems = append(problems, problem{page, 0, fmt.Sprintf("has %d of %d samples of "+
				"outputs", found, len(outputs[page]))})
		}
	}
	return problems
}

// blocks returns the code blocks of a page without their commands, each as one line of text at its
// first line.
func blocks(text string) (all []mdLine) {
	fresh := true
	for _, line := range markdown(text) {
		switch {
		case isPrompt(line):
		case line.code && fresh:
			all, fresh = append(all, line), false
		case line.code:
			all[len(all)-1].text += "\n" + line.text
		default:
			fresh = true
		}
	}
	return all
}

// printedParts returns the parts of all texts of the program between their values, the longest
// first.
func printedParts(t tree) (parts []string) {
	known := map[string]bool{}
	for _, s := range t.sources() {
		if s.test || matches("internal/dev/...", s.dir) || path.Ext(s.name) != ".go" {
			continue
		}
		eachText(s, func(_ token.Pos, text string) {
			for _, part := range verb.Split(text, -1) {
				part = strings.ToLower(spaced(part))
				if len(part) > 1 && !known[part] {
					known[part] = true
					parts = append(parts, part)
				}
			}
		})
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

// spaced returns a text in which every space is one blank.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// unprinted returns the words of a text that remain after all parts of the program's texts are
// taken from it.
func unprinted(text string, parts []string) (words []string) {
	text = strings.ToLower(spaced(text))
	for _, part := range parts {
		if !strings.Contains(text, part) {
			continue
		}
		text = wholeWords(part).ReplaceAllString(text, "$1|$2")
	}
	for _, word := range outputWord.FindAllString(text, -1) {
		if len(word) > 2 && !slices.Contains(outputNames, word) && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// wholeWords matches a part of a text that neither begins nor ends within a word.
func wholeWords(part string) *regexp.Regexp {
	before, after := "()", "()"
	if outputLetter.MatchString(part[:1]) {
		before = "(^|[^a-z])"
	}
	if outputLetter.MatchString(part[len(part)-1:]) {
		after = "($|[^a-z])"
	}
	return regexp.MustCompile(before + regexp.QuoteMeta(part) + after)
}

func TestOutputs(t *testing.T) {
	const code = "package p\nvar texts = []string{`planned %d starts, `+\n\t`%s more`, `of CPU`, " +
		"`%d groups`}\n"
	sample := func(text string) tree {
		return tree{"a.go": code, "docs/slices.md": "# A\n\n```\n" + text + "\n```\n\n" +
			"```\n2 groups\n```\n"}
	}
	find := func(t tree) (problems []problem) {
		return slices.DeleteFunc(findOutputs(t), func(p problem) bool { return p.line == 0 })
	}
	red(t, find, sample("planned 27 starts,\n3 more of CPU"))
	red(t, find, sample("planned 27 blocks, 3 more of cpu"),
		`docs/slices.md:4: the sample has "blocks"`)
	red(t, findOutputs, tree{"a.go": code, "docs/slices.md": "# A\n"},
		"docs/slices.md: has 0 of 2 samples of outputs")
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sorted(findOutputs(repository)) {
		t.Error(p)
	}
}
