package agents

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/runtimes"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/suite"
)

var (
	agentName   = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envName     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	coordinates = lazyregexp.New(`^[\w.-]+:[\w.-]+:[\w.+-]+(:[\w.-]+)?$`)
	digest      = lazyregexp.New(`^[0-9a-f]{64}$`)
	pagePath    = lazyregexp.New(`^/[!-~]*$`)
)

// Read reads agents.yaml. Its error joins all problems, each with file and line.
func Read(file string, data []byte) (*Catalog, error) {
	c := &Catalog{}
	places, err := strictyaml.Read(file, data, c)
	if err != nil {
		return nil, err
	}
	k := &checker{places}
	if len(c.Agents) == 0 {
		k.Wrong("agents", "add an agent with name, about and runtimes, or remove the file",
			"the file lists no agent")
	}
	visited := map[string]bool{}
	for i, a := range c.Agents {
		keyPath := fmt.Sprintf("agents[%d]", i)
		k.named(keyPath, "agent", a.Name, visited)
		k.agent(keyPath, a)
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// checker checks a file.
type checker struct{ *strictyaml.Check }

func (k *checker) named(keyPath, subject, name string, visited map[string]bool) {
	switch {
	case name == "":
		k.Wrong(keyPath, "", "the name of the %s is missing", subject)
	case !agentName.MatchString(name):
		k.Wrong(
			keyPath+".name",
			"use lower-case letters, digits and dashes",
			"%s %q is not a valid name",
			subject,
			name,
		)
	case visited[name]:
		k.Wrong(keyPath+".name", "", "the file lists %s %q twice", subject, name)
	}
	visited[name] = true
}

func (k *checker) agent(keyPath string, a Agent) {
	if a.About == "" {
		k.Wrong(keyPath, "describe the agent in one sentence", "about is missing")
	}
	if len(a.Runtimes) == 0 {
		k.Wrong(keyPath, "one of "+strings.Join(runtimes.Names, ", "), "runtimes is missing")
	}
	for i, r := range a.Runtimes {
		if !slices.Contains(runtimes.Names, r) {
			hint := strictyaml.Meant(
				r,
				runtimes.Names,
				"one of "+strings.Join(runtimes.Names, ", "),
			)
			k.Wrong(fmt.Sprintf("%s.runtimes[%d]", keyPath, i), hint, "unknown runtime %q", r)
		}
	}
	k.fetch(keyPath, a)
	k.env(keyPath+".env", a.Env)
	visited := map[string]bool{}
	for i, l := range a.Levels {
		location := fmt.Sprintf("%s.levels[%d]", keyPath, i)
		k.named(location, "level", l.Name, visited)
		if l.About == "" {
			k.Wrong(location, "describe what the agent does at this level", "about is missing")
		}
		k.env(location+".env", l.Env)
	}
	if a.Scrape != "" && !pagePath.MatchString(a.Scrape) {
		k.Wrong(keyPath+".scrape", "as /metrics", "scrape %q is not a path that begins with "+
			"/", a.Scrape)
	}
	if a.Scrape != "" && !a.uses("metricsPort") {
		k.Wrong(keyPath+".scrape", "use {metricsPort} in env", "scrape needs a port, but no "+
			"variable of the agent uses {metricsPort}")
	}
	home := a.uses("otlpGrpc") || a.uses("otlpHttp") || a.uses("zipkin")
	if home != a.NeedsTelemetry {
		k.Wrong(keyPath, "set needsTelemetry to true if and only if env uses {otlpGrpc}, "+
			"{otlpHttp} or {zipkin}",
			"needsTelemetry is %v", a.NeedsTelemetry)
	}
}

// uses reports whether a variable of the agent or of one of its levels has a placeholder.
func (a Agent) uses(name string) bool {
	all := []map[string]string{a.Env}
	for _, l := range a.Levels {
		all = append(all, l.Env)
	}
	for _, env := range all {
		for _, value := range env {
			if strings.Contains(value, "{"+name+"}") {
				return true
			}
		}
	}
	return false
}

func (k *checker) fetch(keyPath string, a Agent) {
	f := a.Fetch
	n := len(f.ways())
	if n > 1 {
		k.Wrong(keyPath+".fetch", "keep only one of maven, npm, pip, path and build",
			"the agent has several sources in fetch")
	}
	if f.Maven != "" && !coordinates.MatchString(f.Maven) {
		k.Wrong(keyPath+".fetch.maven", "write group:artifact:version or "+
			"group:artifact:version:classifier",
			"%q is not a Maven artifact", f.Maven)
	}
	for _, folder := range []struct{ key, value string }{{"npm", f.Npm}, {"pip", f.Pip}} {
		if folder.value != "" && !filepath.IsLocal(folder.value) {
			k.Wrong(keyPath+".fetch."+folder.key, "write a relative path without ..",
				"folder %q is outside of the checkout", folder.value)
		}
	}
	if pinned := f.Npm != "" || f.Pip != ""; pinned != (f.Package != "") {
		k.Wrong(keyPath+".fetch", "set package to the package whose version is the agent's version",
			"npm and pip need the key package, and other sources cannot have it")
	}
	if f.Path != "" && variable.FindString(f.Path) != f.Path {
		k.Wrong(keyPath+".fetch.path", "write ${NAME}, because the file's path differs between "+
			"machines",
			"path %q is not an environment variable", f.Path)
	}
	if (f.Maven != "") != (a.SHA256 != "") {
		k.Wrong(keyPath, "add or remove sha256; the lock file of npm already contains digests",
			"maven needs the key sha256, and other sources cannot have it")
	} else if a.SHA256 != "" && !digest.MatchString(a.SHA256) {
		k.Wrong(keyPath+".sha256", "write 64 hexadecimal digits", "sha256 %q is not a SHA-256 "+
			"digest", a.SHA256)
	}
	if f.Unpack && f.Maven == "" {
		k.Wrong(keyPath+".fetch.unpack", "", "unpack is possible only with maven")
	}
	if a.uses("agent") && (n == 0 || f.Build != "") {
		k.Wrong(keyPath+".fetch", "", "a variable uses {agent}, but the agent has no files to "+
			"fetch")
	}
}

func (k *checker) env(keyPath string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		location := keyPath + "." + name
		switch {
		case slices.Contains(suite.OwnEnv, name):
			k.Wrong(location, "", "Prony itself sets the variable %s, so an agent cannot set "+
				"it", name)
		case !envName.MatchString(name):
			k.Wrong(keyPath, "", "%q is not a valid name of an environment variable", name)
		}
		plain := variable.ReplaceAllString(env[name], "")
		for _, match := range word.FindAllStringSubmatch(plain, -1) {
			if slices.Contains(Words, match[1]) {
				continue
			}
			hint := "one of " + strings.Join(Words, ", ")
			if near := strictyaml.Nearest(match[1], Words); near != "" {
				hint = fmt.Sprintf("did you mean {%s}?", near)
			}
			k.Wrong(location, hint, "{%s} is not a placeholder that an agent can use", match[1])
		}
	}
}
