package tidy

import (
	"flag"
	"fmt"
	"go/token"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var sampleSeed = flag.Uint64("sample", 0,
	"seed: draw sentences of pages and of printed texts, and write them to testdata")

// samples are the files of drawn sentences, for readers who judge whether each is clear by itself.
var samples = map[string]func(tree) []string{
	"testdata/sample-pages.txt":   sentencesOfPages,
	"testdata/sample-printed.txt": sentencesOfCode,
}

// TestSample draws 80 sentences of each kind if a seed is given.
func TestSample(t *testing.T) {
	if *sampleSeed == 0 {
		t.Skip("no seed")
	}
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for file, find := range samples {
		all := find(repository)
		slices.Sort(all)
		all = slices.Compact(all)
		r := rand.New(rand.NewPCG(*sampleSeed, 0))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		text := fmt.Sprintf("# 80 of %d sentences, drawn with the seed %d\n", len(all), *sampleSeed)
		for i, s := range all[:80] {
			text += fmt.Sprintf("%d\t%s\n", i+1, s)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sentence is a line of a sample; false if a text is too short to be one.
func sentence(file, text string) (line string, ok bool) {
	const least = 5
	if words(text) < least || strings.Count(text, " ") < least-1 || strings.Contains(text, "{{") {
		return "", false
	}
	return path.Base(file) + "\t" + strings.Join(strings.Fields(text), " "), true
}

func sentencesOfPages(t tree) (all []string) {
	for _, name := range t.names() {
		if name != "README.md" && (path.Dir(name) != "docs" || path.Ext(name) != ".md") {
			continue
		}
		eachParagraph(t[name], func(_ int, paragraph string) {
			if strings.Contains(paragraph, "|") { // a row of a table
				return
			}
			for _, s := range Sentences(paragraph) {
				if line, ok := sentence(name, s); ok {
					all = append(all, line)
				}
			}
		}, func(code string) string {
			if strings.HasPrefix(code, "`") {
				return code
			}
			return ""
		})
	}
	return all
}

func sentencesOfCode(t tree) (all []string) {
	for _, s := range t.sources() {
		if s.test || !s.module || !matches("cmd/... internal/...", s.dir) ||
			matches("internal/dev/...", s.dir) {
			continue
		}
		eachText(s, func(_ token.Pos, text string) {
			for paragraph := range strings.SplitSeq(text, "\n\n") {
				if strings.HasPrefix(paragraph, "  ") || strings.ContainsAny(paragraph, "<>{}") {
					continue // commands, markup, scripts
				}
				for _, x := range Sentences(paragraph) {
					if line, ok := sentence(s.name, x); ok {
						all = append(all, line)
					}
				}
			}
		})
	}
	return all
}
