package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"prony/internal/host"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
)

// app is what the verbs share.
type app struct {
	world          world
	args           []string
	stdout, stderr io.Writer
	rootFlag       string
}

// version is that of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	out := strings.Trim(info.Main.Version, "()")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			out += " " + s.Value[:12]
		}
	}
	return out
}

// root is the folder of the catalog: the flag's, or the nearest one upwards that has services/ and
// suites/.
func (a *app) root() (string, error) {
	if a.rootFlag != "" {
		return filepath.Abs(a.rootFlag)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isDir(filepath.Join(at, "services")) && isDir(filepath.Join(at, "suites")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the catalog: no folder from %s upwards has services/ and "+
				"suites/; go into a checkout of Prony, or name one with --root", dir)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readSuite reads a suite file, or the canonical one.
func (a *app) readSuite(root string, args []string) (*suite.Suite, error) {
	file := filepath.Join(root, "suites", "canonical.yaml")
	if len(args) > 0 {
		file = args[0]
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read suite: %w; suites live in %s", err,
			filepath.Join(root, "suites"))
	}
	if rel, err := filepath.Rel(root, file); err == nil && !strings.HasPrefix(rel, "..") {
		file = rel
	}
	return suite.Read(file, data)
}

// catalog reads the manifests. One that is broken is told and left out: the other services go on.
func (a *app) catalog(root string) ([]*service.Service, error) {
	services, err := service.Catalog(root)
	if err != nil && len(services) == 0 {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "prony: left out of the catalog: %v\n", err)
	}
	return services, nil
}

// targets lists what the catalog offers to a plan.
func targets(services []*service.Service) (out []suite.Target) {
	for _, s := range services {
		for _, t := range s.Targets {
			out = append(out, suite.Target{
				Name: s.Full(t), Service: s.Name, Mode: t.Mode, Runtime: t.Runtime,
				Contracts: s.Contracts, Aside: t.Aside, Startup: startupGuess(s, t),
				Processes: processNames(s, t), Language: s.Language, Build: s.Other,
				Builds: buildsOf(services, s, t), NoImage: s.NoImage(t),
			})
		}
	}
	return out
}

// processNames are those of a target that is a system.
func processNames(s *service.Service, t service.Target) (names []string) {
	for _, p := range s.Processes(t) {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// startupGuess is about how long a target takes to come up, for the first estimate of a run only;
// afterwards the trials themselves tell. Systems are JVMs on one core.
func startupGuess(s *service.Service, t service.Target) time.Duration {
	if n := len(s.Processes(t)); n > 1 {
		return time.Duration(n) * 8 * time.Second
	}
	return time.Second
}

func find(services []*service.Service, target string) (*service.Service, service.Target, bool) {
	for _, s := range services {
		for _, t := range s.Targets {
			if s.Full(t) == target {
				return s, t, true
			}
		}
	}
	return nil, service.Target{}, false
}

// provenance gathers what every record of a run says of its origin.
func (a *app) provenance(ctx context.Context, root string, p *suite.Plan,
	tools *service.Tools) result.Provenance {
	out := result.Provenance{
		Prony: version(), Command: append([]string{"prony"}, a.args...), Seed: p.Suite.Seed,
		SuiteHash: p.Suite.Hash, PlanHash: p.Hash, Tools: tools.Versions(),
	}
	host.Describe(&out)
	out.Commit, out.Dirty = commit(ctx, root)
	return out
}

// commit names the checkout's commit and whether anything differs from it; "unknown" where there is
// no checkout or no git.
func commit(ctx context.Context, root string) (id string, dirty bool) {
	head, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown", false
	}
	status, err := exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain").Output()
	return strings.TrimSpace(string(head)), err != nil || len(status) > 0
}

// pick chooses services by name, all when none is named.
func pick(services []*service.Service, names []string) ([]*service.Service, error) {
	if len(names) == 0 {
		return services, nil
	}
	var out []*service.Service
	var errs []error
	for _, n := range names {
		before := len(out)
		for _, s := range services {
			if s.Name == n { // once for each of its builds
				out = append(out, s)
			}
		}
		if len(out) == before {
			errs = append(errs, unknownService(services, n))
		}
	}
	return out, errors.Join(errs...)
}
