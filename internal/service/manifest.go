package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/runtimes"
	"prony.example/internal/base/strictyaml"
)

// Modes are the kinds of threads on which a handler runs.
var Modes = []string{"platform", "virtual", "reactive"}

// Reserved are the variables that Prony sets in the environment of a target.
var Reserved = []string{"HOST", "PORT", "CPUS", "MEMORY_MIB", "PROTOCOL", "TLS_CERT", "TLS_KEY"}

var (
	serviceName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	targetName  = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envName     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	urlPath     = lazyregexp.New(`^/[!-~]*$`)
)

// Load reads the manifest in a service's folder. The error joins all its problems, each with file
// and line; for a folder without a manifest it is os.ErrNotExist.
func Load(dir string) (*Service, error) {
	name := filepath.Join(dir, "service.yaml")
	data, err := files.Kept(name, files.Settings)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("read the manifest %s: %w", name, os.ErrNotExist)
		}
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	s := &Service{}
	check, err := strictyaml.Read(name, data, s)
	if err != nil {
		return nil, err
	}
	s.Dir = dir
	d := document{check}
	d.checkHead(s)
	d.checkNeeds("$.needs", s.Needs)
	d.checkBuild("$.build", s, s.Build)
	d.checkBuilds(s)
	d.checkRun(s)
	d.checkTargets(s)
	d.checkProtocols(s)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// document is a manifest under check.
type document struct{ *strictyaml.Check }

func (d document) checkHead(s *Service) {
	for _, field := range []struct{ key, value string }{
		{"name", s.Name}, {"language", s.Language}, {"framework", s.Framework},
		{"version", s.Version}, {"about", s.About},
	} {
		d.present("$."+field.key, field.key, field.value)
	}
	if folder := filepath.Base(s.Dir); s.Name != "" && s.Name != folder {
		d.Wrong("$.name", "", "name %q differs from the folder's name, %q", s.Name, folder)
	} else if s.Name != "" && !serviceName.MatchString(s.Name) {
		d.Wrong("$.name", "use small letters, digits and dashes, such as java-netty",
			"name %q must have the form language-framework", s.Name)
	}
	if len(s.Contracts) == 0 {
		d.Wrong("$.contracts", oneOf(Contracts()), "contracts is missing")
	}
	for i, name := range s.Contracts {
		keyPath := fmt.Sprintf("$.contracts[%d]", i)
		d.known(keyPath, "contract", name, Contracts())
		if slices.Index(s.Contracts, name) < i {
			d.Wrong(keyPath, "", "contract %q is listed twice", name)
		}
	}
}

func (d document) checkNeeds(location string, needs []Need) {
	for i, need := range needs {
		keyPath := fmt.Sprintf("%s[%d]", location, i)
		if d.known(keyPath+".tool", "tool", need.Tool, toolNames()) && index(needs, need.Tool) < i {
			d.Wrong(keyPath, "", "tool %q is listed twice", need.Tool)
		}
		if _, ok := parseVersion(need.Version); need.Version != "" && !ok {
			d.Wrong(keyPath+".version", "as 25 or 3.11", "version %q must be numbers with dots",
				need.Version)
		}
	}
}

func (d document) checkBuild(location string, s *Service, b Build) {
	for i, step := range b.Steps {
		key := fmt.Sprintf("%s.steps[%d]", location, i)
		if len(step) == 0 || step[0] == "" {
			d.Wrong(key, "write a program and its arguments, such as [mvn, -q, package]",
				"the build step "+
					"is empty")
			continue
		}
		if slices.Contains(toolNames(), step[0]) && s.needs(step[0]) < 0 {
			d.Wrong(key, "", "the step runs %s, which is missing in needs", step[0])
		}
		d.placeholders(key, s, step, buildPlaceholders)
	}
	keyPath, subject := location+".artifact", strings.TrimPrefix(location, "$.")+".artifact"
	if d.present(keyPath, subject, b.Artifact) && !filepath.IsLocal(b.Artifact) {
		d.Wrong(
			keyPath,
			"use a relative path without ..",
			"artifact %q is outside the folder",
			b.Artifact,
		)
	}
}

// checkBuilds checks each further build as if it were the only one.
func (d document) checkBuilds(s *Service) {
	visited := map[string]bool{}
	for i, b := range s.Builds {
		keyPath := fmt.Sprintf("$.builds[%d]", i)
		d.named(keyPath, "build", b.Name, visited)
		used := slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Build == b.Name })
		if !used && len(b.Protocols) == 0 {
			d.Wrong(keyPath+".name", "", "no target uses build %q", b.Name)
		} else if used && len(b.Protocols) > 0 {
			d.Wrong(keyPath+".protocols", "remove targets or protocols",
				"build %q has both targets of its own and protocols for targets of the usual build",
				b.Name)
		}
		ownService := *s
		ownService.Needs = slices.Concat(s.Needs, b.Needs)
		d.checkNeeds(keyPath+".needs", b.Needs)
		d.checkBuild(keyPath, &ownService, b.Build)
		d.placeholders(keyPath+".command", &ownService, b.Command, runPlaceholders)
		if len(b.Command) > 0 && len(s.Run.Processes) > 0 {
			d.Wrong(keyPath+".command", "", "in a system, each process has its own command")
		}
	}
}

func (d document) checkRun(s *Service) {
	if len(s.Run.Processes) > 0 {
		d.checkProcesses(s)
	} else if len(s.Run.Command) == 0 || s.Run.Command[0] == "" {
		d.Wrong("$.run.command", "write a program and its arguments", "run.command is missing")
	}
	d.placeholders("$.run.command", s, s.Run.Command, runPlaceholders)
	d.checkEnv("$.run.env", s, s.Run.Env)
	if wait := s.Run.Startup; wait != 0 && (wait < leastStartup || wait > mostStartup) {
		d.Wrong("$.run.startup", "as 6m", "run.startup is %v, but must be from %v to %v",
			wait, leastStartup,
			mostStartup)
	}
	for _, path := range []struct{ key, value string }{
		{"run.health", s.Run.Health}, {"run.ready", s.Run.Ready},
	} {
		if d.present("$."+path.key, path.key, path.value) && !urlPath.MatchString(path.value) {
			d.Wrong("$."+path.key, "as /health", "%s %q is not a URL path", path.key, path.value)
		}
	}
}

// Limits of run.startup.
const leastStartup, mostStartup = time.Second, time.Hour

func (d document) checkTargets(s *Service) {
	if len(s.Targets) == 0 {
		d.Wrong("$.targets", "add at least one target with name, runtime and mode",
			"targets is missing")
	}
	visited := map[string]bool{}
	for i, t := range s.Targets {
		keyPath := fmt.Sprintf("$.targets[%d]", i)
		d.named(keyPath, "target", t.Name, visited)
		d.known(keyPath+".runtime", "runtime", t.Runtime, runtimes.Names)
		d.known(keyPath+".mode", "mode", t.Mode, Modes)
		ownService := *s
		ownService.Needs = slices.Concat(s.Needs, t.Needs)
		d.checkNeeds(keyPath+".needs", t.Needs)
		d.placeholders(keyPath+".args", &ownService, t.Args, runPlaceholders)
		d.checkEnv(keyPath+".env", &ownService, t.Env)
		d.checkCounters(keyPath, &ownService, t)
		if len(t.Args) > 0 && len(s.Run.Processes) > 0 {
			d.Wrong(keyPath+".args", "use env", "in a system, each process has its own command")
		}
		if builds := s.builds(); t.Build != "" && !slices.Contains(builds, t.Build) {
			d.Wrong(keyPath+".build", oneOf(builds), "the service has no build %q", t.Build)
		}
	}
}

func (d document) checkEnv(keyPath string, s *Service, env map[string]string) {
	for _, name := range sortedKeys(env) {
		switch {
		case slices.Contains(Reserved, name):
			d.Wrong(keyPath+"."+name, "", "Prony itself sets the variable %s", name)
		case !envName.MatchString(name):
			d.Wrong(keyPath, "", "%q is not a valid name of an environment variable", name)
		}
		d.placeholders(keyPath+"."+name, s, []string{env[name]}, envPlaceholders)
	}
}

// placeholders checks that every {word} has a value in this place, and that words for tools are
// among the needs.
func (d document) placeholders(keyPath string, s *Service, texts, known []string) {
	for _, text := range texts {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if _, port, _ := strings.Cut(name, "."); port == "port" && s.process(name) {
				continue
			}
			if (name == "jvm" || name == "native") && text != match[0] {
				d.Wrong(keyPath, "the placeholder expands to several arguments",
					"%s is an argument of its own", match[0])
			}
			if !slices.Contains(known, name) {
				hint := oneOf(known)
				if near := strictyaml.Nearest(name, known); near != "" {
					hint = fmt.Sprintf("did you mean {%s}?", near)
				} else if slices.Contains(runPlaceholders, name) {
					hint = "builds do not run in trials, so their placeholders " +
						"are " + strings.Join(known, ", ")
				}
				d.Wrong(keyPath, hint, "{%s} has no value here", name)
			} else if slices.Contains(toolNames(), name) && !s.mayNeed(name) {
				d.Wrong(keyPath, "", "{%s} is used, and %s is not among needs", name, name)
			}
		}
	}
}

// named checks that an item of a list has a valid and unique name.
func (d document) named(keyPath, subject, name string, visited map[string]bool) {
	keyPath += ".name"
	if d.present(keyPath, "the "+subject+"'s name", name) && !targetName.MatchString(name) {
		d.Wrong(keyPath, "use small letters, digits and dashes", "%s %q is not a valid name",
			subject, name)
	}
	if visited[name] {
		d.Wrong(keyPath, "", "%s %q is listed twice", subject, name)
	}
	visited[name] = true
}

func (d document) present(keyPath, subject, value string) bool {
	if value == "" {
		d.Wrong(keyPath, "", "%s is missing", subject)
	}
	return value != ""
}

func (d document) known(keyPath, subject, value string, known []string) bool {
	if value == "" {
		d.Wrong(keyPath, oneOf(known), "%s is missing", subject)
		return false
	}
	if slices.Contains(known, value) {
		return true
	}
	d.Wrong(keyPath, strictyaml.Meant(value, known, oneOf(known)), "unknown %s %q", subject, value)
	return false
}

// index returns the index of a tool among needs, or -1.
func index(needs []Need, tool string) int {
	return slices.IndexFunc(needs, func(n Need) bool { return n.Tool == tool })
}

// needs returns the index of a tool among the service's own needs, or -1.
func (s *Service) needs(tool string) int { return index(s.Needs, tool) }

// builds returns the names of the further builds.
func (s *Service) builds() (names []string) {
	for _, b := range s.Builds {
		names = append(names, b.Name)
	}
	return names
}

func oneOf(known []string) string { return "one of " + strings.Join(known, ", ") }
