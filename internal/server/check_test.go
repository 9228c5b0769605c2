package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestCheck checks that an edited suite is checked like its file, and that every problem has its
// line.
func TestCheck(t *testing.T) {
	s := newSite(t, Options{Lab: desk{}})
	check := func(name, text string, problems ...string) {
		t.Helper()
		body, err := json.Marshal(Edited{name, text})
		if err != nil {
			t.Fatal(err)
		}
		status, answer := s.ask(t, http.MethodPost, "/check", string(body))
		var got struct{ Problems []string }
		err = json.Unmarshal([]byte(answer), &got)
		if err != nil || status.StatusCode != http.StatusOK || !slices.EqualFunc(got.Problems,
			problems, strings.Contains) {
			t.Errorf("%s: %d, %v, %.600s\nwant %q", text, status.StatusCode, err, answer, problems)
		}
	}
	edit := func(from, to string) string { return strings.Replace(deskSuite, from, to, 1) }
	check("", deskSuite)
	check("canonical", edit("blocks: 4", "warmup: {max: 9s}\nblocks: 6"))
	check("canonical", edit("blocks", "bloks"), `YAML:3: unknown key "bloks"`)
	check("canonical", edit("blocks: 4", "blocks: 0\nseed: -1"), "YAML:4: ")
	check("canonical", edit("blocks: 4", "blocks: 0\ntimeout: 0s"), "YAML:3: blocks 0",
		"YAML:4: timeout 0s")
	check("canonical", "", "it is empty")
	check("canonical", "a: [", "YAML:1: ")
	check("canonical", edit("GET /", "POST /, bodyFile: ../../go.mod"),
		"cannot check a suite with the file ../../go.mod")
	check("prony.yaml", deskSuite, "edit the experiment in prony.yaml")
	wrong := make([]string, mostProblems+1) // each of 25 requests is; the last line counts the rest
	for i := range wrong {
		wrong[i] = "YAML:4: "
	}
	wrong[mostProblems] = "and 5 more"
	check("canonical", edit("{request: GET /}", strings.Repeat("{request: x}, ", 25)), wrong...)
	if status, text := s.ask(t, http.MethodPost, "/check", `{"suite":"none","yaml":""}`); status.
		StatusCode != http.StatusNotFound || !strings.Contains(text, "no suite has the name") {
		t.Errorf("none: %d %s", status.StatusCode, text)
	}
}
