package lab

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/tidy"
	"prony.example/internal/report"
	"prony.example/internal/service"
	"prony.example/internal/suite"
)

var update = flag.Bool("update", false, "write the documents that these tests hold")

// ours returns the checkout's catalog, and the suite of protocols.
func ours(t *testing.T) (root string, c Catalog, s *suite.Suite) {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	c, err = service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, "suites", "protocols.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = suite.Read(name, text); err != nil {
		t.Fatal(err)
	}
	return root, c, s
}

// A target by its full name is picked alone.
func TestPickOneTarget(t *testing.T) {
	_, catalog, _ := ours(t)
	for _, s := range catalog {
		for _, of := range s.Targets {
			name := s.Full(of)
			if !strings.Contains(name, "/") {
				continue // the service's own name, with all of its builds
			}
			got, err := catalog.Pick([]string{name})
			if err != nil || len(got) != 1 || !slices.Equal(got.Names(), []string{name}) {
				t.Errorf("%s: %v, %v", name, got.Names(), err)
			}
		}
	}
	_, err := catalog.Pick([]string{"java-jdk/vitrual", "go-netttp"})
	for _, want := range []string{`target "java-jdk/vitrual" does not exist; did you mean ` +
		`"java-jdk/virtual"?`,
		`service "go-netttp" does not exist; did you mean "go-nethttp"?`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The page about protocols lists those of each service in the catalog.
func TestSpokenIsDocumented(t *testing.T) {
	root, catalog, _ := ours(t)
	rows := [][]string{append([]string{"service"}, service.Protocols...)}
	for _, s := range catalog {
		if s.Other != "" || len(s.Spoken()) == 0 {
			continue
		}
		row := []string{s.Name}
		for _, protocol := range service.Protocols {
			by := "–"
			if s.Speaking(protocol) != nil {
				by = "yes"
			}
			row = append(row, by)
		}
		rows = append(rows, row)
	}
	name := filepath.Join(root, "docs", "protocols.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for i, row := range rows {
		table.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			table.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	want, err := report.Update(page, "spoken", []byte(table.String()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(want, page) {
		t.Errorf("%s is not what the manifests say; -update writes it", name)
	}
}

// The suite of protocols measures a target of each language in all protocols of its service, and
// every protocol that some service has.
func TestSuiteOfProtocols(t *testing.T) {
	_, catalog, s := ours(t)
	p, err := s.Plan(catalog.Targets())
	if err != nil {
		t.Fatal(err)
	}
	languages := map[string]bool{}
	for _, target := range catalog.Targets() {
		if !slices.Contains(p.Targets(), target.Name) {
			continue
		}
		languages[target.Language] = true
		for _, sc := range s.Scenarios {
			want := append([]string{"none"}, target.Protocols...)
			if len(sc.Variants) > 0 {
				want = slices.DeleteFunc(want, func(v string) bool {
					return v != "none" && !slices.Contains(sc.Variants, v)
				})
			}
			var got []string
			for _, x := range p.Trials {
				if x.Block == 1 && x.Target == target.Name && x.Scenario == sc.Name {
					got = append(got, x.Variant)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s in %s: %v, want %v", target.Name, sc.Name, got, want)
			}
		}
	}
	for _, language := range []string{"Go", "Java", "JavaScript", "Rust", "Python"} {
		if !languages[language] {
			t.Errorf("no target in %s", language)
		}
	}
}

// A trial of a variant with a protocol starts the build that supports it.
func TestBuildOfAProtocol(t *testing.T) {
	_, catalog, s := ours(t)
	p, err := s.Plan(catalog.Targets())
	if err != nil {
		t.Fatal(err)
	}
	r := run{planned: planned{plan: p, catalog: catalog, suite: s}}
	seen := map[string]bool{}
	for _, x := range p.Trials {
		by, target, err := r.launched(x)
		if err != nil || by == nil {
			t.Fatalf("%s: %v", x.ID, err)
		}
		if by.Full(target) != x.Target {
			t.Errorf("%s is started as %s", x.ID, by.Full(target))
		}
		if with := s.Variant(x.Variant).Protocol; by.Alone() {
			seen[by.Label()] = true
			if !slices.Contains(by.Protocols, with) {
				t.Errorf("%s speaks %q by %s", x.ID, with, by.Label())
			}
		}
	}
	if !seen["go-nethttp (grpc)"] {
		t.Errorf("builds for protocols alone are %v", seen)
	}
}
