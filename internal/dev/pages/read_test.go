package pages

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command is a command of a page.
type command struct {
	line int // of the page, from 1
	text string
}

var (
	fence = regexp.MustCompile("^( *)```(.*)$")
	span  = regexp.MustCompile("`([^`]+)`")
	// spoken is a command in a sentence: a program, a verb and more.
	spoken = regexp.MustCompile(`^(docker|go|helm|kind|kubectl|minikube|openssl|prony) \S+ \S`)
	// fileName is the first line of a block that a reader saves as a file.
	fileName = regexp.MustCompile(`^# (\S+\.yaml)$`)
)

// read returns the commands of a page in order, and the files that it shows. Commands are the lines
// of blocks without a language or in sh, after "$ " where a block has prompts, and code spans. A
// span with which another command of the page begins only mentions that command.
func read(text string) (all []command, files map[string]string) {
	files = map[string]string{}
	lines := strings.Split(text, "\n")
	var prose []string // with empty lines for blocks
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			prose = append(prose, lines[i])
			continue
		}
		indent, language, begin := m[1], m[2], i+1
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			lines[i] = strings.TrimPrefix(lines[i], indent)
		}
		block := lines[begin:min(i, len(lines))]
		prose = append(prose, make([]string, len(block)+2)...)
		first := strings.Join(block[:min(1, len(block))], "")
		if m := fileName.FindStringSubmatch(first); m != nil {
			files[m[1]] = strings.Join(block, "\n") + "\n"
		} else if language == "" || language == "sh" {
			all = append(all, typed(block, begin+1)...)
		}
	}
	all = slices.Concat(all, spans(strings.Join(prose, "\n"), all))
	slices.SortStableFunc(all, func(a, b command) int { return a.line - b.line })
	return all, files
}

// typed returns the commands of a block whose first line has a number.
func typed(block []string, number int) (all []command) {
	prompts := slices.ContainsFunc(block, func(line string) bool {
		return strings.HasPrefix(line, "$ ")
	})
	for i := 0; i < len(block); i++ {
		line, at := block[i], number+i
		if line = strings.TrimPrefix(line, "$ "); prompts && line == block[i] ||
			strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(block) {
			i++
			line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(block[i])
		}
		all = append(all, command{at, line})
	}
	return all
}

// spans returns the commands in sentences that are not also the beginning of another command.
func spans(prose string, others []command) (all []command) {
	for _, m := range span.FindAllStringSubmatchIndex(prose, -1) {
		text := strings.Join(strings.Fields(prose[m[2]:m[3]]), " ")
		if text = strings.ReplaceAll(text, `\|`, "|"); spoken.MatchString(text) {
			all = append(all, command{1 + strings.Count(prose[:m[2]], "\n"), text})
		}
	}
	var kept []command
	for i, c := range all {
		longer := func(o command) bool { return strings.HasPrefix(o.text, c.text+" ") }
		same := func(o command) bool { return o.text == c.text }
		if !slices.ContainsFunc(slices.Concat(others, all[:i]), same) &&
			!slices.ContainsFunc(slices.Concat(others, all), longer) {
			kept = append(kept, c)
		}
	}
	return kept
}

func TestRead(t *testing.T) {
	const page = "# A\n\nRun `prony stack up` or `prony run`, or `helm\ntemplate x`.\n\n" +
		"```\nprony stack up --wait 1m\nX=1 docker compose \\\n    up\n```\n\n" +
		"- a\n\n  ```\n  $ prony plan\n  a table\n  ```\n\n" +
		"```yaml\n# own.yaml\na: 1\n```\n\n```yaml\nb: 2\n```\n\n" +
		"| `docker save \"$1\" \\| ctr` |\n\n```sh\n# a comment\n. three.env\n```\n" +
		"Again: `helm template x`.\n"
	all, files := read(page)
	want := []command{{3, "helm template x"}, {7, "prony stack up --wait 1m"},
		{8, "X=1 docker compose up"}, {15, "prony plan"}, {28, `docker save "$1" | ctr`},
		{32, ". three.env"}}
	if !slices.Equal(all, want) {
		t.Errorf("commands\n%+v, want\n%+v", all, want)
	}
	if !maps.Equal(files, map[string]string{"own.yaml": "# own.yaml\na: 1\n"}) {
		t.Errorf("files %q", files)
	}
}
