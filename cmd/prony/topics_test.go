package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

var updateTopics = flag.Bool("update.topics", false,
	"write the tables of docs/formats/environment.md")

// internalVariables are variables that Prony sets for its own processes.
var internalVariables = []string{"PRONY_DOCKER_GUARD", "PRONY_ENTER", "PRONY_HEARTBEAT",
	"PRONY_KUBERNETES_GUARD", "PRONY_KUBERNETES_READ", "PRONY_PAD"}

// Every variable that the code reads is in the help topic or internal, and the topic contains no
// variable of Prony that no code reads.
func TestVariables(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range variables {
		known := regexp.MustCompile(`(?:PRONY|GRAFANA)_[A-Z_]+`)
		for _, name := range known.FindAllString(r.name, -1) {
			listed[name] = false
		}
	}
	literal := regexp.MustCompile(`"((?:PRONY|GRAFANA)_[A-Z_]+)"`)
	for _, dir := range []string{"../../cmd", "../../internal", "../../load", "../../home"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "/dev/") || strings.Contains(path, "test/") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
				if _, ok := listed[m[1]]; ok {
					listed[m[1]] = true
				} else if !slices.Contains(internalVariables, m[1]) && m[1] != "PRONY_" {
					t.Errorf("%s reads %s, which the topic environment does not list", path, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range listed {
		if !read {
			t.Errorf("the topic environment lists %s, which nothing reads", name)
		}
	}
}

// The topics have a page, and prony help prints them.
func TestTopics(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "formats", "environment.md")
	for _, topic := range []struct {
		name, head string
		rows       []topicRow
	}{{"exit-codes", "exit code", exitCodes}, {"environment", "variable", variables}} {
		stdout, stderr, exit := say(t, mock{}, "help", topic.name)
		last := topic.rows[len(topic.rows)-1].name
		if exit != cli.Fine || !strings.Contains(stdout, last+"\n    ") {
			t.Errorf("help %s exits with %d: %s%s", topic.name, exit, stdout, stderr)
		}
		rows := []string{"| " + topic.head + " | meaning |", "|---|---|"}
		for _, r := range topic.rows {
			name := "`" + strings.ReplaceAll(r.name, ", ", "`, `") + "`"
			rows = append(rows, "| "+name+" | "+r.meaning+" |")
		}
		testsets.Table(t, page, "<!-- "+topic.name+" -->", rows, *updateTopics)
	}
}
