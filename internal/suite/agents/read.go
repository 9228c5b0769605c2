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
		k.Wrong("agents", "list one, with name, about and runtimes, or remove the file",
			"it names no agent")
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
		k.Wrong(keyPath, "", "the %s's name is missing", subject)
	case !agentName.MatchString(name):
		k.Wrong(
			keyPath+".name",
			"small letters, digits and dashes",
			"%s %q is not a name",
			subject,
			name,
		)
	case visited[name]:
		k.Wrong(keyPath+".name", "", "%s %q is there twice", subject, name)
	}
	visited[name] = true
}

func (k *checker) agent(keyPath string, a Agent) {
	if a.About == "" {
		k.Wrong(keyPath, "what it is, in one sentence", "about is missing")
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
			k.Wrong(location, "what the agent does at this level", "about is missing")
		}
		k.env(location+".env", l.Env)
	}
	if a.Scrape != "" && !pagePath.MatchString(a.Scrape) {
		k.Wrong(keyPath+".scrape", "as /metrics", "scrape %q is not a path", a.Scrape)
	}
	if a.Scrape != "" && !a.uses("metricsPort") {
		k.Wrong(keyPath+".scrape", "name {metricsPort} in env", "nothing serves that page")
	}
	home := a.uses("otlpGrpc") || a.uses("otlpHttp") || a.uses("zipkin")
	if home != a.NeedsTelemetry {
		k.Wrong(keyPath, "true where env names {otlpGrpc}, {otlpHttp} or {zipkin}, and only there",
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
		k.Wrong(keyPath+".fetch", "at most one of maven, npm, pip, path and build",
			"several ways to fetch one agent")
	}
	if f.Maven != "" && !coordinates.MatchString(f.Maven) {
		k.Wrong(keyPath+".fetch.maven", "group:artifact:version, or with :classifier",
			"%q is not an artifact of Maven", f.Maven)
	}
	for _, folder := range []struct{ key, value string }{{"npm", f.Npm}, {"pip", f.Pip}} {
		if folder.value != "" && !filepath.IsLocal(folder.value) {
			k.Wrong(keyPath+".fetch."+folder.key, "a relative path without ..",
				"folder %q is outside the checkout", folder.value)
		}
	}
	if pinned := f.Npm != "" || f.Pip != ""; pinned != (f.Package != "") {
		k.Wrong(keyPath+".fetch", "whose version is the agent's",
			"package belongs to npm and pip, and both need it")
	}
	if f.Path != "" && variable.FindString(f.Path) != f.Path {
		k.Wrong(keyPath+".fetch.path", "${NAME}: where a file is differs between machines",
			"path %q is not a variable", f.Path)
	}
	if (f.Maven != "") != (a.SHA256 != "") {
		k.Wrong(keyPath, "npm's lock file has digests of its own",
			"sha256 belongs to maven, and maven needs one")
	} else if a.SHA256 != "" && !digest.MatchString(a.SHA256) {
		k.Wrong(keyPath+".sha256", "64 digits in hex", "%q is not a SHA-256", a.SHA256)
	}
	if f.Unpack && f.Maven == "" {
		k.Wrong(keyPath+".fetch.unpack", "", "unpack is for maven")
	}
	if a.uses("agent") && (n == 0 || f.Build != "") {
		k.Wrong(keyPath+".fetch", "", "{agent} is used, and nothing is fetched")
	}
}

func (k *checker) env(keyPath string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		location := keyPath + "." + name
		switch {
		case slices.Contains(suite.OwnEnv, name):
			k.Wrong(location, "", "the lab itself sets %s", name)
		case !envName.MatchString(name):
			k.Wrong(keyPath, "", "%q is not a name of an environment variable", name)
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
			k.Wrong(location, hint, "{%s} has no value here", match[1])
		}
	}
}
