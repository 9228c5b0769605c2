package suite_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// Each launcher has trials of its own; a target without an image has none in containers. The
// default launcher has no name, and naming it does not change the plan's hash.
func TestLaunchersMultiplyTrials(t *testing.T) {
	two := []suite.Target{{Name: "a", Service: "a", Contracts: []string{"hello"}},
		{Name: "b", Service: "b", Contracts: []string{"hello"}, NoImage: "it has no Dockerfile"}}
	check := func(launchers, want string) *suite.Plan {
		t.Helper()
		text := strings.Replace(whole, "baseline: go\n", "", 1)
		s := read(t, strings.Replace(text, "loads:", launchers+"loads:", 1))
		if err := s.Override(suite.Override{Targets: []string{"a", "b"}, Blocks: 1}); err != nil {
			t.Fatal(err)
		}
		p := plan(t, s, two)
		got := map[string]bool{}
		for _, tr := range p.Trials {
			if !strings.HasSuffix(tr.ID, strings.TrimSuffix("-"+tr.Launcher, "-")) {
				t.Errorf("trial %s of %s by %q", tr.ID, tr.Target, tr.Launcher)
			}
			got[tr.Target+" "+tr.Launcher] = true
		}
		if names := slices.Sorted(maps.Keys(got)); strings.Join(names, ",") != want ||
			len(p.Trials) != 2*len(names) { // two scenarios
			t.Errorf("%q: %d trials of %q, want %s", launchers, len(p.Trials), names, want)
		}
		return p
	}
	bare := check("", "a ,b ")
	if named := check("launchers: [process]\n", "a ,b "); named.Hash != bare.Hash {
		t.Errorf("hash %s where the default is named, else %s", named.Hash, bare.Hash)
	}
	check("launchers: [process, docker]\n", "a ,a docker,b ")
	if docker := check("launchers: [docker]\n", "a docker"); docker.Hash == bare.Hash {
		t.Error("containers have the plan of processes")
	}
	check("launchers: [process, docker, docker-host]\n", "a ,a docker,a docker-host,b ")
}
