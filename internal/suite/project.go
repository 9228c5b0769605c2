package suite

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/service/counters"
	"prony.example/load/template"
)

// ProjectFiles are the possible names of a project's file.
var ProjectFiles = []string{"prony.yaml", "prony.yml"}

// Project is the file of a user's own repository: targets that no catalog has, and experiments with
// them, whose keys are those of suites (docs/project.md).
type Project struct {
	Targets map[string]Source `yaml:"targets"`
	// Ready is the path that answers 200 once a target serves; empty: that of the first GET.
	Ready   string         `yaml:"ready"`
	Startup Duration       `yaml:"startup"` // maximum startup time of a target
	Needs   []Need         `yaml:"needs"`   // of all targets
	Suites  map[string]any `yaml:"suites"`  // by name, each with keys of a suite

	Names []string            `yaml:"-"` // of the targets, in the order of the file
	File  string              `yaml:"-"`
	rows  map[string][]string // of targets with a matrix, by its name
	doc   *strictyaml.Document
	data  []byte
}

// Source describes how a target is obtained: by one of command, url, image and compose.
type Source struct {
	Command string          `yaml:"command"`
	Dir     string          `yaml:"dir"` // below the file's folder
	Env     map[string]Text `yaml:"env"`
	Build   string          `yaml:"build"` // for sh
	Git     string          `yaml:"git"`   // a revision
	URL     string          `yaml:"url"`
	Image   string          `yaml:"image"` // of the local Docker engine
	Port    int             `yaml:"port"`  // of the container, or fixed; 0: see adhoc.Source
	Needs   []Need          `yaml:"needs"`
	Matrix  Matrix          `yaml:"matrix"`
	Compose Compose         `yaml:"compose"`
	Built   string          `yaml:"-"` // the target of whose matrix it is a row; empty: none
	// Connections is the number of connections of its loads and warm-up; 0: their own.
	Connections int `yaml:"-"`
	// Body is the size of request bodies; 0: the suite's bodies.
	Body strictyaml.Size `yaml:"-"`
	// Processes are started before the command, in this order.
	Processes []Process `yaml:"processes"`
	// Counters are the counters of the target's backend calls, by name.
	Counters map[string]counters.Place `yaml:"counters"`
}

// Compose is a service of a Compose file.
type Compose struct {
	File    string `yaml:"file"`
	Service string `yaml:"service"`
	Port    int    `yaml:"port"` // of its container; 0: the port in the file
}

// UnmarshalYAML sets defaults.
func (o *Compose) UnmarshalYAML(decode func(any) error) error {
	type plain Compose
	return defaulted("project.targets.NAME.compose.", (*plain)(o), decode)
}

// Need is a tool without which a target is left out.
type Need struct {
	Tool    string `yaml:"tool"`
	Version string `yaml:"version"` // command that prints its version; empty: TOOL --version
}

// project is the prefix of the rows of a project's own keys.
const project = "project."

// projectParameters are the keys of a project that suites do not have.
var projectParameters = slices.Concat([]parameter{
	{key: "project.targets", required: true, min: 1, max: 1000, form: ownForm, such: "old",
		about: "mapping of names to targets; each target has exactly one of command, url, image " +
			"and compose"},
	{key: "project.targets.NAME.command",
		about: "command that starts the target; `$PORT` or `{port}` is its port"},
	{key: "project.targets.NAME.dir",
		about: "folder in which the target is built and started, below the file's folder"},
	{key: "project.targets.NAME.env", max: 100, form: envForm, such: "GOGC",
		about: "environment variables, which override the variables of your environment"},
	{key: "project.targets.NAME.build",
		about: "`sh` command that builds the target, in a copy of the folder outside of the " +
			"repository"},
	{key: "project.targets.NAME.git",
		about: "revision of the repository, instead of the present files; requires build"},
	{key: "project.targets.NAME.url",
		about: "address of a running service, such as `http://127.0.0.1:8081`; another machine " +
			"requires `--remote`"},
	{key: "project.targets.NAME.image",
		about: "image of the local Docker engine, such as `app:1.2`; Prony does not pull images"},
	{key: "project.targets.NAME.port", min: 1, max: 65535,
		about: "port on which the image's service listens; default: the port that the image " +
			"exposes, else `$PORT`"},
	{key: "project.targets.NAME.compose",
		about: "service of a Compose file, which Prony starts with its dependencies"},
	{key: "project.targets.NAME.compose.file", def: "compose.yaml",
		about: "path of the Compose file, below the file's folder"},
	{key: "project.targets.NAME.compose.service", about: "Compose service that receives the " +
		"requests"},
	{key: "project.targets.NAME.compose.port", min: 1, max: 65535,
		about: "port on which the service listens in its container; default: the port in the " +
			"Compose file"},
}, needs("project.targets.NAME.needs"), processParameters, matrixParameters, []parameter{
	{key: "project.ready",
		about: "path that returns status 200 when a target is ready, or `-` to wait for its " +
			"first connection; default: the path of the first GET"},
	{key: "project.startup", def: "30s", min: second / 10, max: hour,
		about: "longest time from the start of a target until it is ready"},
}, needs("project.needs"), []parameter{
	{key: "project.suites", max: 100, form: suiteForm, such: "peak",
		about: "mapping of names to additional experiments: each has keys of a suite, which " +
			"replace the keys of the file; `prony run NAME` runs one experiment"},
})

// needs returns the rows of a list of needs.
func needs(keyPath string) []parameter {
	return []parameter{
		{
			key: keyPath,
			max: 100,
			about: "tools that a target requires: without them, Prony leaves the target out; " +
				"records contain their versions",
		},
		{key: keyPath + "[].tool", required: true, about: "program on the PATH"},
		{key: keyPath + "[].version",
			about: "command that prints the tool's version; default: `TOOL --version`"},
	}
}

// ownForm matches the names of targets, which are also names of files and cgroups.
var ownForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

var isRevision = lazyregexp.New(`^[^-\s][^\s]*$`)

// defaultLoads are the loads of a project that defines none.
const defaultLoads = "loads: [{name: peak, model: closed}, " +
	"{name: half, model: open, rate: 50% of peak}]"

// ReadProject decodes and checks data, the content of the named file, and each of its experiments.
// The error joins one *strictyaml.Error per problem, each with file and line.
func ReadProject(file string, data []byte) (*Project, error) {
	c, err := newChecker(file, data)
	if err != nil {
		return nil, err
	}
	doc := c.Document
	if _, is := doc.Node("").(*ast.MappingNode); !is {
		return nil, doc.Problem("$", "the file is not a mapping of keys",
			"write keys such as targets and requests, without an anchor before them")
	}
	p := &Project{File: file, doc: doc, data: data}
	ownNames := topKeys(reflect.TypeFor[Project]())
	c.known(ownNames)
	preset(reflect.ValueOf(p).Elem(), project)
	mine := doc.Pick(func(key string) bool { return slices.Contains(ownNames, key) })
	problems := []error{c.Err(), mine.Decode(p)}
	names := slices.DeleteFunc(append([]string{""}, doc.Names("suites")...), func(n string) bool {
		return n == "" && !p.runs() && len(doc.Names("suites")) > 0
	})
	for _, name := range names {
		if d, err := p.document(name); err == nil { // otherwise reported below
			problems = append(problems, d.Decode(&Suite{}))
		}
	}
	if err := strictyaml.Join(problems...); err != nil {
		return nil, err
	}
	p.Names = doc.Names("targets")
	walk(reflect.ValueOf(p).Elem(), project, "", c.value)
	for _, name := range p.Names {
		c.target(step("targets", name), p.Targets[name])
	}
	if p.Ready != "" && p.Ready != "-" && !strings.HasPrefix(p.Ready, "/") {
		c.Wrong("ready", "write a path such as /health, or - to wait for the first connection",
			"ready %q is not a path that begins with /", p.Ready)
	}
	p.expand(c)
	problems = []error{c.Err()}
	for _, name := range names {
		_, err := p.Suite(name)
		problems = append(problems, err)
	}
	if err := strictyaml.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

// topKeys returns the keys of a struct, without those of its fields.
func topKeys(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

// known reports top-level keys that neither a project nor a suite has.
func (c *checker) known(ownNames []string) {
	all := slices.Concat(ownNames, []string{"requests"}, topKeys(reflect.TypeFor[Suite]()))
	all = slices.DeleteFunc(all, func(k string) bool { return k == "contract" })
	for _, name := range c.Names("") {
		switch {
		case name == "contract":
			c.Wrong(name, "set the expected responses with expect, or remove contract: Prony "+
				"then uses the responses that all targets give before the "+
				"run", "only targets of the catalog have contracts; a project "+
				"cannot have a contract")
		case !slices.Contains(all, name):
			c.Wrong(step("", name), strictyaml.Meant(name, all, "known keys are "+
				strings.Join(all, ", ")), "unknown key %q", name)
		}
	}
}

// target checks that the target at a path is of one kind, and has what the kind needs.
func (c *checker) target(keyPath string, s Source) {
	kinds := present(struct {
		Command string `yaml:"command"`
		URL     string `yaml:"url"`
		Image   string `yaml:"image"`
		Compose bool   `yaml:"compose"`
	}{s.Command, s.URL, s.Image, c.Node(keyPath+".compose") != nil})
	if c.Node(keyPath+".compose") != nil && s.Compose.Service == "" {
		c.Wrong(keyPath+".compose", "write compose: {service: web}", "compose.service is missing")
	}
	for _, k := range []struct{ key, text, want string }{
		{"command", s.Command, "write the command that starts the target"},
		{"url", s.URL, "write a URL such as http://127.0.0.1:8081"},
		{"image", s.Image, "write an image such as app:1.2"},
		{"git", s.Git, "write a revision such as main, HEAD~1 or a commit"},
		{"build", s.Build, "write the command that builds the target"}} {
		if strings.TrimSpace(k.text) == "" && c.Node(keyPath+"."+k.key) != nil {
			c.Wrong(
				keyPath+"."+k.key,
				k.want+", or remove the key",
				"the key %s of target %s is empty",
				k.key,
				last(keyPath),
			)
		}
	}
	switch {
	case len(kinds) == 0:
		c.Wrong(keyPath, "add command, url, image or compose to the target",
			"the target %s has no command, url, image or compose", last(keyPath))
	case len(kinds) > 1:
		c.Wrong(keyPath+"."+kinds[1], "remove all but one of these keys",
			"the target %s has both %s", last(keyPath), strings.Join(kinds, " and "))
	}
	for _, k := range []struct{ key, text string }{
		{"dir", s.Dir}, {"build", s.Build}, {"git", s.Git}} {
		if k.text != "" && s.Command == "" && len(kinds) == 1 {
			c.Wrong(keyPath+"."+k.key, "remove "+k.key,
				"%s requires a command, but target %s is defined by %s", k.key, last(keyPath),
				kinds[0])
		}
	}
	if s.Port != 0 && s.Image == "" && s.Command == "" {
		c.Wrong(keyPath+".port", "remove port", "port requires an image or a command")
	}
	if len(s.Env) > 0 && s.URL != "" {
		c.Wrong(
			keyPath+".env",
			"remove env",
			"target %s is a running service, so Prony cannot set its environment",
			last(keyPath),
		)
	}
	c.processes(keyPath, s)
	c.counters(keyPath, s)
	if s.Git != "" && s.Build == "" {
		c.Wrong(keyPath+".git", "add build with the command that builds the revision",
			"git requires build, because a revision has no build results")
	}
	if s.Git != "" && !isRevision.MatchString(s.Git) {
		c.Wrong(keyPath+".git", "write a revision such as main, HEAD~1 or a commit",
			"git %q is not a valid revision", s.Git)
	}
}

// runs reports whether the file contains an experiment outside of its suites.
func (p *Project) runs() bool {
	return p.doc.Node("requests") != nil || p.doc.Node("scenarios") != nil
}

// Experiments returns the names of the experiments, in order. An experiment of the file itself has
// no name and comes first.
func (p *Project) Experiments() []string {
	names := slices.Sorted(slices.Values(p.doc.Names("suites")))
	if p.runs() || len(names) == 0 {
		names = append([]string{""}, names...)
	}
	return names
}

// Suite returns the experiment with a name; empty: that of the file itself, or its only suite.
func (p *Project) Suite(name string) (*Suite, error) {
	names := p.doc.Names("suites")
	if name == "" && !p.runs() && len(names) == 1 {
		name = names[0]
	}
	if name == "" && !p.runs() && len(names) > 1 {
		return nil, fmt.Errorf("%s contains several experiments: %s; name the experiment to "+
			"run", p.File,
			strings.Join(names, ", "))
	}
	switch {
	case name != "" && len(names) == 0:
		return nil, fmt.Errorf("%s has no suites, so it has no suite %q; leave out the name",
			p.File, name)
	case name != "" && !slices.Contains(names, name):
		return nil, fmt.Errorf("%s has no suite %q; %s", p.File, name, strictyaml.Meant(name, names,
			"its suites are "+strings.Join(names, ", ")))
	}
	doc, err := p.document(name)
	if err != nil {
		return nil, err
	}
	c := &checker{Check: strictyaml.Check{Document: doc}, noMode: true}
	s, err := c.suite(p.File, p.data)
	if err == nil {
		p.swept(s)
		err = cmp.Or(p.movable(s, doc), p.sized(s, doc), p.counted(s, doc), p.connected(s, doc))
	}
	if err == nil && name != "" && doc.Node("targets") != nil &&
		p.doc.Node("suites."+name+".baseline") == nil && !slices.ContainsFunc(s.Targets,
		func(pattern string) bool { return matches(pattern, s.Baseline) }) {
		s.Baseline = "" // the baseline of the file, which this experiment lacks
	}
	return s, err
}

// document returns the experiment with a name as the document of a suite; empty: that of the file.
func (p *Project) document(name string) (*strictyaml.Document, error) {
	suites := topKeys(reflect.TypeFor[Suite]())
	doc := p.doc.Pick(func(key string) bool {
		return key == "requests" || key != "targets" && slices.Contains(suites, key)
	})
	if name != "" {
		inner := p.doc.Names("suites." + name)
		instead := map[string]string{"requests": "scenarios", "scenarios": "requests"}
		doc = doc.Pick(func(key string) bool { return !slices.Contains(inner, instead[key]) }).
			Over(p.doc, "suites."+name)
	}
	if doc.Node("name") == nil {
		doc = doc.With("name: "+cmp.Or(name, "project"), "", "")
	}
	if doc.Node("requests") != nil {
		if doc.Node("scenarios") != nil {
			return nil, doc.Problem("requests", "the file has both requests and scenarios",
				"keep one of the two keys: requests is a short form of one scenario")
		}
		doc = doc.With("scenarios: [{name: requests, requests: 0}]", "scenarios[0].requests",
			"requests").Pick(func(key string) bool { return key != "requests" })
	}
	if doc.Node("scenarios") == nil {
		return nil, doc.Problem("", "the file has no requests", "add requests, such as "+
			"requests: [{request: GET /}]")
	}
	if doc.Node("loads") == nil {
		doc = doc.With(defaultLoads, "", "")
	}
	return doc, nil
}

// movable returns an error for a warm-up on all cores with a target that no command starts, because
// it cannot be moved to other cores.
func (p *Project) movable(s *Suite, doc *strictyaml.Document) error {
	for _, name := range p.Names {
		if s.Warmup.Cores == AllCores && p.Targets[name].Command == "" && s.measures(name) {
			return doc.Problem("warmup.cores", fmt.Sprintf("warmup.cores %s: target %s has no "+
				"command, so it cannot be moved to other cores", AllCores, name), "remove "+
				"warmup.cores, or measure "+name+" in another suite")
		}
	}
	return nil
}

// measures reports whether a target of the project is part of the experiment.
func (s *Suite) measures(name string) bool {
	return len(s.Targets) == 0 || slices.ContainsFunc(s.Targets, func(pattern string) bool {
		return pattern == "all" || matches(pattern, name)
	})
}

// matches reports whether a pattern matches a name.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name) // malformed patterns are reported where they are read
	return ok
}

// Hold sends, by fetch, all requests that are constant and need no earlier response, and stores the
// returned expectations in the requests for which the file has none. unsupported are the requests
// that cannot be sent and have no expectations. Hold does not send setups, because a second one may
// create its data twice.
func (s *Suite) Hold(
	fetch func(requests []Request, unsupported []string) ([]Request, error),
) error {
	var requested []Request
	var requests []*Request
	var alternatives []string
	scenarios := slices.Clone(s.Scenarios)
	for i := range scenarios {
		scenarios[i].Requests = slices.Clone(scenarios[i].Requests)
		alone := !scenarios[i].Flow
		for j := range scenarios[i].Requests {
			r := &scenarios[i].Requests[j]
			keyPath := fmt.Sprintf("scenarios[%d].requests[%d].", i, j)
			isSet := s.source.Node(keyPath+"expect") != nil ||
				s.source.Node(keyPath+"checks") != nil
			q, _, ok := r.Fixed()
			if r.Setup != "" {
				alone = alone && !scenarios[i].Cookies // which other requests send
			} else if ok && alone {
				q.Given = isSet
				requested, requests = append(requested, q), append(requests, r)
			} else if !isSet {
				alternatives = append(alternatives, r.Request)
			}
		}
	}
	retained, err := fetch(requested, alternatives)
	if err != nil {
		return err
	}
	for i, q := range retained {
		if !q.Given {
			requests[i].Expect, requests[i].Checks = q.Expect, q.Checks
		}
	}
	s.Scenarios = scenarios
	return nil
}

// Fixed returns the request with its body. ok reports whether it is constant except for env, the
// variables of the environment.
func (r Request) Fixed() (out Request, env []string, ok bool) {
	out, ok = r, true
	out.Body, out.BodyFile = r.Content(), ""
	texts := []string{out.Request, out.Body}
	for _, value := range r.Headers {
		texts = append(texts, string(value))
	}
	for _, in := range texts {
		t, err := template.Parse(in, nil)
		if err != nil {
			ok = false
			continue
		}
		env, ok = append(env, t.Environment()...), ok && t.Constant()
	}
	return out, env, ok
}

// FirstGet returns the path of the first GET request that is constant, without variables of the
// environment; empty: there is none.
func (s *Suite) FirstGet() string {
	for _, sc := range s.Scenarios {
		for _, r := range sc.Requests {
			q, env, ok := r.Fixed()
			if method, path := q.Line(""); ok && method == http.MethodGet && len(env) == 0 {
				return path
			}
		}
	}
	return ""
}
