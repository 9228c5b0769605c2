package agent

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"prony/internal/config"
	"prony/internal/pattern"
	"prony/internal/runtimes"
	"prony/internal/suite"
)

var (
	agentName   = pattern.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envName     = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	coordinates = pattern.New(`^[\w.-]+:[\w.-]+:[\w.+-]+(:[\w.-]+)?$`)
	digest      = pattern.New(`^[0-9a-f]{64}$`)
	pagePath    = pattern.New(`^/[!-~]*$`)
)

// Read reads agents.yaml. All its problems are joined into the error, each with file and line.
func Read(file string, data []byte) (*Catalog, error) {
	c := &Catalog{}
	if err := config.Decode(file, data, c); err != nil {
		return nil, err
	}
	places, err := config.Parse(file, data)
	if err != nil {
		return nil, err
	}
	k := &checker{places: places}
	if len(c.Agents) == 0 {
		k.wrong("agents", "agents is missing", "at least one, with name, about and runtimes")
	}
	seen := map[string]bool{}
	for i, a := range c.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		k.named(at, "agent", a.Name, seen)
		k.agent(at, a)
	}
	if len(k.errs) > 0 {
		return nil, errors.Join(k.errs...)
	}
	return c, nil
}

// checker is a file under check, with what is wrong with it so far.
type checker struct {
	places *config.Document
	errs   []error
}

func (k *checker) wrong(at, problem, hint string) {
	k.errs = append(k.errs, k.places.Problem(at, problem, hint))
}

func (k *checker) named(at, what, name string, seen map[string]bool) {
	switch {
	case name == "":
		k.wrong(at, "the "+what+"'s name is missing", "")
	case !agentName.MatchString(name):
		k.wrong(at+".name", fmt.Sprintf("%s %q is no name", what, name),
			"small letters, digits and dashes")
	case seen[name]:
		k.wrong(at+".name", fmt.Sprintf("%s %q is there twice", what, name), "")
	}
	seen[name] = true
}

func (k *checker) agent(at string, a Agent) {
	if a.About == "" {
		k.wrong(at, "about is missing", "what it is, in one sentence")
	}
	if len(a.Runtimes) == 0 {
		k.wrong(at, "runtimes is missing", "one of "+strings.Join(runtimes.Names, ", "))
	}
	for i, r := range a.Runtimes {
		if !slices.Contains(runtimes.Names, r) {
			hint := "one of " + strings.Join(runtimes.Names, ", ")
			if near := config.Nearest(r, runtimes.Names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			k.wrong(fmt.Sprintf("%s.runtimes[%d]", at, i), fmt.Sprintf("unknown runtime %q", r),
				hint)
		}
	}
	k.fetch(at, a)
	k.env(at+".env", a, a.Env)
	seen := map[string]bool{}
	for i, l := range a.Levels {
		where := fmt.Sprintf("%s.levels[%d]", at, i)
		k.named(where, "level", l.Name, seen)
		if l.About == "" {
			k.wrong(where, "about is missing", "what the agent does at this level")
		}
		k.env(where+".env", a, l.Env)
	}
	if a.Scrape != "" && !pagePath.MatchString(a.Scrape) {
		k.wrong(at+".scrape", fmt.Sprintf("scrape %q is not a path", a.Scrape), "as /metrics")
	}
	if a.Scrape != "" && !a.uses("metricsPort") {
		k.wrong(at+".scrape", "nothing serves that page", "name {metricsPort} in env")
	}
	home := a.uses("otlpGrpc") || a.uses("otlpHttp") || a.uses("zipkin")
	if home != a.NeedsHome {
		k.wrong(at, fmt.Sprintf("needsHome is %v", a.NeedsHome),
			"true where env names {otlpGrpc}, {otlpHttp} or {zipkin}, and only there")
	}
}

// uses says whether a placeholder is in a variable of the agent or of one of its levels.
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

func (k *checker) fetch(at string, a Agent) {
	f := a.Fetch
	n := len(f.ways())
	if n > 1 {
		k.wrong(at+".fetch", "several ways to fetch one agent",
			"at most one of maven, npm, pip, path and build")
	}
	if f.Maven != "" && !coordinates.MatchString(f.Maven) {
		k.wrong(at+".fetch.maven", fmt.Sprintf("%q is no artifact of Maven", f.Maven),
			"group:artifact:version, or with :classifier")
	}
	for _, folder := range []struct{ key, value string }{{"npm", f.Npm}, {"pip", f.Pip}} {
		if folder.value != "" && !filepath.IsLocal(folder.value) {
			k.wrong(at+".fetch."+folder.key, fmt.Sprintf("folder %q is outside the checkout",
				folder.value), "a relative path without ..")
		}
	}
	if pinned := f.Npm != "" || f.Pip != ""; pinned != (f.Package != "") {
		k.wrong(at+".fetch", "package belongs to npm and pip, and both need it",
			"whose version is the agent's")
	}
	if f.Path != "" && variable.FindString(f.Path) != f.Path {
		k.wrong(at+".fetch.path", fmt.Sprintf("path %q is not a variable", f.Path),
			"${NAME}: where a file is differs between machines")
	}
	if (f.Maven != "") != (a.SHA256 != "") {
		k.wrong(at, "sha256 belongs to maven, and maven needs one",
			"npm's lock file has digests of its own")
	} else if a.SHA256 != "" && !digest.MatchString(a.SHA256) {
		k.wrong(at+".sha256", fmt.Sprintf("%q is no SHA-256", a.SHA256), "64 digits in hex")
	}
	if f.Unpack && f.Maven == "" {
		k.wrong(at+".fetch.unpack", "unpack is for maven", "")
	}
	if a.uses("agent") && (n == 0 || f.Build != "") {
		k.wrong(at+".fetch", "{agent} is used, and nothing is fetched", "")
	}
}

func (k *checker) env(at string, a Agent, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		where := at + "." + name
		switch {
		case slices.Contains(suite.OwnEnv, name):
			k.wrong(where, "the lab itself sets "+name, "")
		case !envName.MatchString(name):
			k.wrong(at, fmt.Sprintf("%q is no name of an environment variable", name), "")
		}
		bare := variable.ReplaceAllString(env[name], "")
		for _, match := range word.FindAllStringSubmatch(bare, -1) {
			if slices.Contains(Words, match[1]) {
				continue
			}
			hint := "one of " + strings.Join(Words, ", ")
			if near := config.Nearest(match[1], Words); near != "" {
				hint = fmt.Sprintf("did you mean {%s}?", near)
			}
			k.wrong(where, fmt.Sprintf("{%s} has no value here", match[1]), hint)
		}
	}
}
