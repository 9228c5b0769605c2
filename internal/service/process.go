package service

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/service/counters"
)

// Processes returns the processes of a target in the order of their start: those of its system, or
// the single one of the service's command.
func (s *Service) Processes(t Target) []Process {
	if len(s.Run.Processes) == 0 {
		return []Process{{Command: slices.Concat(s.Run.Command, t.Args), Ready: s.Run.Ready}}
	}
	var out []Process
	for _, p := range s.Run.Processes {
		if len(p.Targets) == 0 || slices.Contains(p.Targets, t.Name) {
			out = append(out, p)
		}
	}
	return out
}

// ProcessName returns the name of a process in telemetry: its own name in a system, otherwise the
// target's.
func ProcessName(s *Service, t Target, p Process) string { return cmp.Or(p.Name, s.Full(t)) }

// Backed reports whether a target has backing processes.
func (s *Service) Backed(t Target) bool {
	return slices.ContainsFunc(s.Processes(t), func(p Process) bool { return p.Backing })
}

func (p Process) share() float64 { return cmp.Or(p.Share, 1) }

// process reports whether a placeholder such as config.port names a process.
func (s *Service) process(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return slices.ContainsFunc(s.Run.Processes, func(p Process) bool { return p.Name == name })
}

// mayNeed reports whether a tool is among the needs of the service or of one of its targets.
func (s *Service) mayNeed(tool string) bool {
	return s.needs(tool) >= 0 || slices.ContainsFunc(s.Targets, func(t Target) bool {
		return index(t.Needs, tool) >= 0
	})
}

func (d document) checkProcesses(s *Service) {
	if len(s.Run.Command) > 0 {
		d.Wrong("$.run.command", "", "in a system, each process has its own command")
	}
	visited := map[string]bool{}
	for i, p := range s.Run.Processes {
		keyPath := fmt.Sprintf("$.run.processes[%d]", i)
		d.named(keyPath, "process", p.Name, visited)
		if len(p.Command) == 0 || p.Command[0] == "" {
			d.Wrong(keyPath+".command", "write a program and its arguments",
				"the process has no command")
		}
		if p.Ready != "" && !urlPath.MatchString(p.Ready) {
			d.Wrong(keyPath+".ready", "as /health", "ready %q is not a URL path", p.Ready)
		}
		if p.Image != "" && p.Image != noImage {
			d.Wrong(keyPath+".image", "use none, or remove the key, so that the Dockerfile "+
				"builds the image",
				"image %q is not allowed", p.Image)
		}
		if p.Share < 0 {
			d.Wrong(keyPath+".share", "", "share %g is negative", p.Share)
		}
		d.placeholders(keyPath+".command", s, p.Command, runPlaceholders)
		d.checkEnv(keyPath+".env", s, p.Env)
		d.checkProcessTargets(keyPath, s, p, i == len(s.Run.Processes)-1)
	}
	for _, t := range s.Targets {
		d.checkPorts(s, t)
	}
}

// checkPorts checks that the target contains each process whose port it mentions.
func (d document) checkPorts(s *Service, t Target) {
	parts := s.Processes(t)
	for _, p := range parts {
		texts := slices.Clone(p.Command)
		for _, env := range []map[string]string{s.Run.Env, p.Env, t.Env} {
			texts = slices.AppendSeq(texts, maps.Values(env))
		}
		for _, c := range t.Counters {
			texts = append(texts, c.Postgres, c.Metrics)
		}
		for _, match := range placeholder.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
			name, port, _ := strings.Cut(match[1], ".")
			exists := slices.ContainsFunc(parts, func(p Process) bool { return p.Name == name })
			if port == "port" && !exists && s.process(match[1]) {
				d.Wrong("$.run.processes", "set the variable in env of only the targets that "+
					"have this process",
					"%s needs {%s}, and target %s has no %s", p.Name, match[1], t.Name, name)
			}
		}
	}
}

// checkProcessTargets checks that the targets exist, and that the last process, which receives the
// requests, is part of all.
func (d document) checkProcessTargets(keyPath string, s *Service, p Process, last bool) {
	for i, name := range p.Targets {
		known := slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Name == name })
		if !known {
			d.Wrong(fmt.Sprintf("%s.targets[%d]", keyPath, i), "", "the service has no target %q",
				name)
		}
	}
	if last && len(p.Targets) > 0 {
		d.Wrong(keyPath+".targets", "", "the last process receives the requests of every target, "+
			"so it cannot have targets")
	}
	if last && p.Backing {
		d.Wrong(keyPath+".backing", "remove the key",
			"the last process receives the requests and is measured, so it cannot be a backing "+
				"process")
	}
	if last && p.Ready != s.Run.Ready {
		d.Wrong(keyPath+".ready", "set both keys to the same path",
			"the last process must use the path of run.ready")
	}
}

// counterPlaceholders are the placeholders of a counter's URLs, besides ports of processes.
var counterPlaceholders = []string{"host", "port"}

// CounterAt returns a target's counter with {host}, {port} and {PROCESS.port} replaced in its URLs.
// ports are those of a trial's processes by name; the key "" is the process that receives the
// requests.
func CounterAt(c counters.Place, host string, ports map[string]int) (counters.Place, error) {
	values := map[string]string{"host": host, "port": strconv.Itoa(ports[""])}
	for name, port := range ports {
		values[name+".port"] = strconv.Itoa(port)
	}
	var err error
	if c.Postgres, err = expand(c.Postgres, values); err == nil {
		c.Metrics, err = expand(c.Metrics, values)
	}
	return c, err
}

func (d document) checkCounters(keyPath string, s *Service, t Target) {
	for _, name := range slices.Sorted(maps.Keys(t.Counters)) {
		c, here := t.Counters[name], keyPath+".counters."+name
		if key, hint, text := c.Wrong(name); text != "" {
			d.Wrong(here+key, hint, "%s", text)
		}
		d.placeholders(here, s, []string{c.Postgres, c.Metrics}, counterPlaceholders)
	}
}
