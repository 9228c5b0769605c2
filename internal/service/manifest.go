package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"prony/internal/config"
	"prony/internal/pattern"
	"prony/internal/runtimes"
)

// Modes are the ways in which a handler runs.
var Modes = []string{"platform", "virtual", "reactive"}

// Reserved is what the lab itself puts into the environment of a target.
var Reserved = []string{"HOST", "PORT", "CPUS", "MEMORY_MIB"}

var (
	serviceName = pattern.New(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	targetName  = pattern.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envName     = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	urlPath     = pattern.New(`^/[!-~]*$`)
)

// Load reads the manifest of one service's folder. All its problems are joined into the error, each
// with file and line; a folder without a manifest is os.ErrNotExist.
func Load(dir string) (*Service, error) {
	file := filepath.Join(dir, "service.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("read the manifest %s: %w", file, os.ErrNotExist)
		}
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	s := &Service{}
	if err := config.Decode(file, data, s); err != nil {
		return nil, err
	}
	s.Dir = dir
	d, err := newDocument(file, data)
	if err != nil {
		return nil, err
	}
	d.checkHead(s)
	d.checkNeeds("$.needs", s.Needs)
	d.checkBuild("$.build", s, s.Build)
	d.checkBuilds(s)
	d.checkRun(s)
	d.checkTargets(s)
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return s, nil
}

func (d *document) checkHead(s *Service) {
	for _, field := range []struct{ key, value string }{
		{"name", s.Name}, {"language", s.Language}, {"framework", s.Framework},
		{"version", s.Version}, {"about", s.About},
	} {
		d.present("$."+field.key, field.key, field.value)
	}
	if folder := filepath.Base(s.Dir); s.Name != "" && s.Name != folder {
		d.wrong("$.name", fmt.Sprintf("name %q is not the folder's, %q", s.Name, folder), "")
	} else if s.Name != "" && !serviceName.MatchString(s.Name) {
		d.wrong("$.name", fmt.Sprintf("name %q is not language-framework", s.Name),
			"small letters, digits and dashes, as java-netty")
	}
	if len(s.Contracts) == 0 {
		d.wrong("$.contracts", "contracts is missing", oneOf(Contracts()))
	}
	for i, name := range s.Contracts {
		at := fmt.Sprintf("$.contracts[%d]", i)
		d.known(at, "contract", name, Contracts())
		if slices.Index(s.Contracts, name) < i {
			d.wrong(at, fmt.Sprintf("contract %q is there twice", name), "")
		}
	}
}

func (d *document) checkNeeds(where string, needs []Need) {
	for i, need := range needs {
		at := fmt.Sprintf("%s[%d]", where, i)
		if d.known(at+".tool", "tool", need.Tool, toolNames()) && index(needs, need.Tool) < i {
			d.wrong(at, fmt.Sprintf("tool %q is there twice", need.Tool), "")
		}
		if _, ok := parseVersion(need.Version); need.Version != "" && !ok {
			d.wrong(at+".version", fmt.Sprintf("version %q is not dotted numbers", need.Version),
				"as 25 or 3.11")
		}
	}
}

func (d *document) checkBuild(where string, s *Service, b Build) {
	for i, step := range b.Steps {
		at := fmt.Sprintf("%s.steps[%d]", where, i)
		if len(step) == 0 || step[0] == "" {
			d.wrong(at, "the step is empty", "a program and its arguments, as [mvn, -q, package]")
			continue
		}
		if slices.Contains(toolNames(), step[0]) && s.needs(step[0]) < 0 {
			d.wrong(at, fmt.Sprintf("the step runs %s, which is not among needs", step[0]), "")
		}
		d.placeholders(at, s, step, buildPlaceholders)
	}
	at, what := where+".artifact", strings.TrimPrefix(where, "$.")+".artifact"
	if d.present(at, what, b.Artifact) && !filepath.IsLocal(b.Artifact) {
		d.wrong(at, fmt.Sprintf("artifact %q is outside the folder", b.Artifact),
			"a relative path without ..")
	}
}

// checkBuilds checks each further build as if it were the only one.
func (d *document) checkBuilds(s *Service) {
	seen := map[string]bool{}
	for i, b := range s.Builds {
		at := fmt.Sprintf("$.builds[%d]", i)
		d.named(at, "build", b.Name, seen)
		used := slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Build == b.Name })
		if !used {
			d.wrong(at+".name", fmt.Sprintf("no target is of build %q", b.Name), "")
		}
		own := *s
		own.Needs = slices.Concat(s.Needs, b.Needs)
		d.checkNeeds(at+".needs", b.Needs)
		d.checkBuild(at, &own, b.Build)
		d.placeholders(at+".command", &own, b.Command, runPlaceholders)
		if len(b.Command) > 0 && len(s.Run.Processes) > 0 {
			d.wrong(at+".command", "a system has a command for each process", "")
		}
	}
}

func (d *document) checkRun(s *Service) {
	if len(s.Run.Processes) > 0 {
		d.checkProcesses(s)
	} else if len(s.Run.Command) == 0 || s.Run.Command[0] == "" {
		d.wrong("$.run.command", "run.command is missing", "a program and its arguments")
	}
	d.placeholders("$.run.command", s, s.Run.Command, runPlaceholders)
	d.checkEnv("$.run.env", s, s.Run.Env)
	for _, path := range []struct{ key, value string }{
		{"run.health", s.Run.Health}, {"run.ready", s.Run.Ready},
	} {
		if d.present("$."+path.key, path.key, path.value) && !urlPath.MatchString(path.value) {
			d.wrong("$."+path.key, fmt.Sprintf("%s %q is not a path", path.key, path.value),
				"as /health")
		}
	}
}

func (d *document) checkTargets(s *Service) {
	if len(s.Targets) == 0 {
		d.wrong("$.targets", "targets is missing", "at least one, with name, runtime and mode")
	}
	seen := map[string]bool{}
	for i, t := range s.Targets {
		at := fmt.Sprintf("$.targets[%d]", i)
		d.named(at, "target", t.Name, seen)
		d.known(at+".runtime", "runtime", t.Runtime, runtimes.Names)
		d.known(at+".mode", "mode", t.Mode, Modes)
		own := *s
		own.Needs = slices.Concat(s.Needs, t.Needs)
		d.checkNeeds(at+".needs", t.Needs)
		d.placeholders(at+".args", &own, t.Args, runPlaceholders)
		d.checkEnv(at+".env", &own, t.Env)
		if len(t.Args) > 0 && len(s.Run.Processes) > 0 {
			d.wrong(at+".args", "a system has a command for each process", "use env")
		}
		if builds := s.builds(); t.Build != "" && !slices.Contains(builds, t.Build) {
			d.wrong(at+".build", fmt.Sprintf("there is no build %q", t.Build), oneOf(builds))
		}
	}
}

func (d *document) checkEnv(at string, s *Service, env map[string]string) {
	for _, name := range sortedKeys(env) {
		switch {
		case slices.Contains(Reserved, name):
			d.wrong(at+"."+name, "the lab itself sets "+name, "")
		case !envName.MatchString(name):
			d.wrong(at, fmt.Sprintf("%q is no name of an environment variable", name), "")
		}
		d.placeholders(at+"."+name, s, []string{env[name]}, envPlaceholders)
	}
}

// placeholders wants every {word} to have a value where it stands, and those that are tools to be
// among the needs.
func (d *document) placeholders(at string, s *Service, texts, known []string) {
	for _, text := range texts {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if _, port, _ := strings.Cut(name, "."); port == "port" && s.process(name) {
				continue
			}
			if name == "jvm" && text != "{jvm}" {
				d.wrong(at, "{jvm} is an argument of its own", "it becomes several")
			}
			if !slices.Contains(known, name) {
				hint := oneOf(known)
				if near := config.Nearest(name, known); near != "" {
					hint = fmt.Sprintf("did you mean {%s}?", near)
				} else if slices.Contains(runPlaceholders, name) {
					hint = "a build knows no trial; it knows " + strings.Join(known, ", ")
				}
				d.wrong(at, fmt.Sprintf("{%s} has no value here", name), hint)
			} else if slices.Contains(toolNames(), name) && !s.mayNeed(name) {
				d.wrong(at, fmt.Sprintf("{%s} is used, and %s is not among needs", name, name), "")
			}
		}
	}
}

// named wants an item of a list to have a name that no other has.
func (d *document) named(at, what, name string, seen map[string]bool) {
	at += ".name"
	if d.present(at, "the "+what+"'s name", name) && !targetName.MatchString(name) {
		d.wrong(at, fmt.Sprintf("%s %q is no name", what, name), "small letters, digits and dashes")
	}
	if seen[name] {
		d.wrong(at, fmt.Sprintf("%s %q is there twice", what, name), "")
	}
	seen[name] = true
}

func (d *document) present(at, what, value string) bool {
	if value == "" {
		d.wrong(at, what+" is missing", "")
	}
	return value != ""
}

func (d *document) known(at, what, value string, known []string) bool {
	if value == "" {
		d.wrong(at, what+" is missing", oneOf(known))
		return false
	}
	if slices.Contains(known, value) {
		return true
	}
	hint := oneOf(known)
	if near := config.Nearest(value, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.wrong(at, fmt.Sprintf("unknown %s %q", what, value), hint)
	return false
}

// index is that of a tool among needs, or -1.
func index(needs []Need, tool string) int {
	return slices.IndexFunc(needs, func(n Need) bool { return n.Tool == tool })
}

// needs is the index of a tool among the service's own needs, or -1.
func (s *Service) needs(tool string) int { return index(s.Needs, tool) }

// builds are the names of the further builds.
func (s *Service) builds() (names []string) {
	for _, b := range s.Builds {
		names = append(names, b.Name)
	}
	return names
}

func oneOf(known []string) string { return "one of " + strings.Join(known, ", ") }
