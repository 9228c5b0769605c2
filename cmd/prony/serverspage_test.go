package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/report"
	"prony.example/record"
)

var updateServers = flag.Bool("update.servers", false, "write the table of docs/formats/servers.md")

// serversPage is the page with the results of realServers.
const serversPage = "../../docs/formats/servers.md"

// serverResult is one load of a server: a line of results.ndjson and of the table.
type serverResult struct {
	Server     string   `json:"server"`
	Version    string   `json:"version"`
	Protocol   string   `json:"protocol"` // as prony load's URLs name it
	KeepAlive  string   `json:"keepAlive"`
	Model      string   `json:"model"`
	Requests   int64    `json:"requests"`
	Reconnects int64    `json:"reconnects"`
	Retried    int64    `json:"retried"`
	Verdict    string   `json:"verdict"` // without the rules about the machine
	Rules      []string `json:"rules,omitempty"`
	Date       string   `json:"date"`
}

// same reports whether both are results of one case.
func (r serverResult) same(o serverResult) bool {
	return r.Server == o.Server && r.Protocol == o.Protocol && r.KeepAlive == o.KeepAlive &&
		r.Model == o.Model
}

// resultsFile keeps the results between runs of the third set.
var resultsFile = filepath.Join(serversDir, "results.ndjson")

// knownResults reads the results of earlier runs.
func knownResults(t *testing.T) (results []serverResult) {
	t.Helper()
	text, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var r serverResult
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}

// keepResults writes the results of this run and, for other cases, of earlier runs, in the order of
// the cases.
func keepResults(t *testing.T, fresh []serverResult) {
	t.Helper()
	known := slices.Concat(fresh, knownResults(t))
	var text bytes.Buffer
	for _, want := range wantedResults() {
		if i := slices.IndexFunc(known, want.same); i >= 0 {
			line, err := json.Marshal(known[i])
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
	}
	if err := os.WriteFile(resultsFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	writePage(t, true)
}

// wantedResults lists all cases, without results.
func wantedResults() (wanted []serverResult) {
	for _, c := range serverCases() {
		keep := "default"
		if c.short {
			keep = c.server.short
		}
		wanted = append(wanted, serverResult{Server: c.server.name, Protocol: c.scheme,
			KeepAlive: keep, Model: c.model})
	}
	return wanted
}

// writePage compares the table of the page with the results, or writes it.
func writePage(t *testing.T, write bool) {
	t.Helper()
	var table strings.Builder
	head := []string{"server", "protocol", "keep-alive", "model", "requests", "reconnects",
		"retried", "verdict", "findings", "date"}
	fmt.Fprintf(&table, "| %s |\n|%s---:|---:|---:|---|---|---|\n", strings.Join(head, " | "),
		strings.Repeat("---|", 4))
	for _, r := range knownResults(t) {
		fmt.Fprintf(&table, "| %s %s | %s | %s | %s | %d | %d | %d | %s | %s | %s |\n", r.Server,
			r.Version, r.Protocol, r.KeepAlive, r.Model, r.Requests, r.Reconnects, r.Retried,
			r.Verdict, strings.Join(r.Rules, ", "), r.Date)
	}
	have, err := os.ReadFile(serversPage)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "servers", []byte(table.String()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !write {
		t.Fatalf("%s has another table: run go test ./cmd/prony -run ServersPage -update.servers",
			serversPage)
	}
	if err := os.WriteFile(serversPage, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The page has rows of each server, at most one for each case, and none that is INVALID.
func TestServersPage(t *testing.T) {
	writePage(t, *updateServers)
	known, wanted := knownResults(t), wantedResults()
	for i, r := range known {
		if !slices.ContainsFunc(wanted, r.same) || slices.IndexFunc(known, r.same) != i {
			t.Errorf("no case, or a second row of it: %+v", r)
		}
		if r.Verdict == record.Invalid || r.Requests == 0 || r.Version == "" {
			t.Errorf("%+v", r)
		}
	}
	for _, s := range realServers {
		if !slices.ContainsFunc(known, func(r serverResult) bool { return r.Server == s.name }) {
			t.Errorf("no result of %s", s.name)
		}
	}
}
