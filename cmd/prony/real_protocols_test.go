package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// A service is measured in each of its protocols, and its keys are removed. TestFairnessOfAll
// checks that every service keeps its contracts in all of them.
func TestRealProtocols(t *testing.T) {
	const name = "go-nethttp"
	testsets.Once(t, name+" in its protocols", testsets.Needs{Files: []string{"contract",
		"suites/protocols.yaml", "services/" + name}})
	root := checkout(t)
	services, err := service.Catalog(root)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(services, func(s *service.Service) bool {
		return s.Name == name && s.Other == ""
	})
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	askedIn(t, root, name, services[i].Spoken())
}

// Containers, with an address of their own or this machine's, get requests in every protocol over
// TLS. Jetty rejects requests for another name than its certificate's, which matters if the address
// is the container's own.
func TestRealProtocolsContained(t *testing.T) {
	check := func(target string, spoken []string, launchers ...string) {
		t.Run(target, func(t *testing.T) {
			name, _, _ := strings.Cut(target, "/")
			engine(t, testsets.Long, name)
			askedIn(t, checkout(t), target, spoken, launchers...)
		})
	}
	check("go-nethttp", service.Protocols, "docker", "docker-host")
	check("java-jetty/virtual", []string{"https", "h2", "h2c"}, "docker")
}

// askedIn runs the suite's first scenario for the target, one short block, and checks its records.
func askedIn(t *testing.T, root, target string, spoken []string, launchers ...string) {
	t.Helper()
	if len(launchers) == 0 {
		launchers = suite.Launchers[:1]
	}
	dir := filepath.Join(root, "r")
	out, stderr, exit := really("run", filepath.Join(root, "suites/protocols.yaml"), "--root",
		root, "--out", dir, "--targets", target, "--scenarios", "cached read", "--blocks", "1",
		"--measure", "300ms", "--interleave", "blocks", "--warmup", "300ms", "--launcher",
		strings.Join(launchers, ","))
	if exit != cli.Fine && exit != cli.Invalid { // the machine may be busy
		t.Fatalf("exit %d\n%s%s", exit, out, stderr)
	}
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != len(launchers)*(1+len(spoken)) {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		if r.Outcome != record.Measured {
			t.Errorf("%s: %+v", r.Trial, r.Failure)
			continue
		}
		for _, l := range r.Loads {
			want := nethttp.Schemes[r.Target.Variant]
			if l.Protocol != want || l.Done == 0 || l.Errors.Total() > 0 ||
				nethttp.Secure(want) != (l.TLS != "") {
				t.Errorf("%s %s: %d answers in %q over %q, errors %+v, want %q", r.Trial, l.Name,
					l.Done, l.Protocol, l.TLS, l.Errors, want)
			}
		}
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".pem") || bytes.Contains(text, []byte("PRIVATE KEY")) {
			t.Errorf("%s has a key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
