//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/observe/host"
	"prony.example/internal/report/compare"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial/lab"
	"prony.example/record"
)

// versusFlags say what is compared, and how.
type versusFlags struct {
	names     []string
	revisions []string
	urls      []string
	remote    []string
	images    []string
	port      int
	build     string
	command   string

	gets     []string
	requests []string
	headers  []string
	body     string
	kind     string
	ignore   bool
	ca       string

	ready   string
	startup time.Duration
	memory  strictyaml.Size
	by      string
	again   bool
	plan    bool
	options adhoc.Options
	change  suite.Override
	seed    uint64
	out     string
}

const versusAbout = `Versus compares services of your own, in any language, with nothing to write
and nothing to install into them: each is started by its command under equal limits, warmed up, and
put under the same load, block by block in shuffled order; the report says how much they differ, how
sure that is, and what each number is worth.

A service gets its port in $PORT, or where its command says {port}, and listens on 127.0.0.1. It
sees your environment. Variables in front of a command are set, and a command that does more than
name a program and its arguments is handed to sh. With --git each revision of the repository is
cloned outside of it, built by --build and started by --run in its own folder. With --url services
that run already are compared as they are: nothing is started, limited or stopped; what they cost is
told of this machine's alone, and another machine is loaded where --remote names it. With --image
each is run as a container of that image, which the local Docker engine must have.

Before anything is measured each service is asked three times. What all answers have in common,
status and body, is what every answer under load is held against: one that differs is an error, not
a fast answer. Where bodies vary, versus says where, and holds JSON by the fields that stay the
same. Services that answer differently are not compared, unless --ignore-body says that only the
status counts.

The first one also runs a second time in each block, as NAME-again: what differs between the two
differs by chance, and stands beside the answer. One service alone is a valid use.

What decides is said beforehand: the processor time of a request at the peak, which is the
steadiest, or what --by names. Of the one error in twenty that the answer may make, it has four
fifths; the other numbers share the rest, so that they are believed when they differ by more.

The exit code is 0 when every trial is VALID or SUSPECT, 4 when one is INVALID or failed, 1 when the
services could not be compared, 2 for a command line that makes no sense.`

const versusExamples = `  prony versus './app' 'GOGC=400 ./app' --get /items/1
  prony versus 'python3 -m http.server --bind 127.0.0.1 {port}' --get /
  prony versus --git main --git HEAD --build 'go build -o app .' --run ./app --get /items/1
  prony versus --url http://127.0.0.1:8081 --url http://127.0.0.1:8082 --get /items/1
  prony versus --image app:1.2 --image app:1.3 --get /items/1
  prony versus --protocol h2c ./old ./new --get /items/1
  prony versus -n old -n new './old -p {port}' './new -p {port}' --request 'POST /sum' \
      --body '{"a":1}' --type application/json`

func (a *app) versusCmd() *cobra.Command {
	f := &versusFlags{}
	c := &cobra.Command{
		Use: "versus [COMMAND...]", Short: "Compare services of your own: which is faster?",
		Args: cobra.ArbitraryArgs, Long: versusAbout, Example: versusExamples,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.given(c.Flags().Changed); err != nil {
				return err
			}
			return a.versus(c.Context(), args, f)
		},
	}
	fs := c.Flags()
	fs.StringArrayVarP(&f.names, "name", "n", nil, "name of a service, in their order; repeatable")
	fs.StringArrayVar(&f.revisions, "git", nil,
		"revision of the repository that is worked in, to be compared; repeatable")
	fs.StringArrayVar(&f.urls, "url", nil, "service that runs already, as "+
		"http://127.0.0.1:8081; repeatable")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	fs.StringArrayVar(&f.images, "image", nil, "image of the local Docker engine, as app:1.2, "+
		"to be run in containers; repeatable")
	fs.IntVar(&f.port, "port", 0, "with --image: where its service listens (default: the port "+
		"that it exposes, else $PORT)")
	fs.StringVar(&f.build, "build", "", "with --git: what builds a revision, for sh")
	fs.StringVar(&f.command, "run", "", "with --git: what starts it")
	fs.StringArrayVar(&f.gets, "get", nil,
		"path to ask for; repeatable, then a mix of equal parts")
	fs.StringArrayVar(&f.requests, "request", nil, "likewise with a method, as 'POST /items'")
	fs.StringArrayVarP(&f.headers, "header", "H", nil,
		"header field, as 'Name: value'; repeatable")
	fs.StringVar(&f.body, "body", "", "body of the requests that are no GET")
	fs.StringVar(&f.kind, "type", "", "media type of the body (default text/plain)")
	fs.BoolVar(&f.ignore, "ignore-body", false, "hold answers by their status alone")
	speaks := &f.options.Speaks
	speaks.Protocol = suite.Protocols[0]
	cli.OneOf(c, &speaks.Protocol, "protocol", "what is spoken", suite.Protocols...)
	fs.IntVar(&speaks.Streams, "streams", 0,
		"requests at once on each connection (h2, h2c, h3, gRPC)")
	fs.StringVar(&speaks.Unix, "unix", "", "the services listen at this Unix socket, in whose "+
		"path {port} is $PORT")
	fs.BoolVarP(&speaks.TLS.Insecure, "insecure", "k", false, "accept any certificate")
	fs.StringVar(&f.ca, "ca", "", "file of the certificates to trust, in PEM")
	fs.StringVar(&f.ready, "ready", "", "path that answers 200 once a service serves, or - for "+
		"its first connection (default: the first path of --get, else the connection)")
	fs.DurationVar(&f.startup, "startup", 30*time.Second,
		"how long a service may take to come up")
	fs.StringVar(&f.options.SLO, "slo", "", "then find the highest rate that keeps these "+
		"objectives, as 'p99<20ms,errors<0.1%'")
	fs.IntVarP(&f.options.Connections, "connections", "c", 64, "connections of the loads")
	fs.IntVar(&f.change.Generators, "generators", 0, generatorsHelp)
	fs.IntVar(&f.options.Blocks, "blocks", 5, "how often each service is measured")
	fs.DurationVar((*time.Duration)(&f.change.For), "for", 0,
		"instead of blocks: go on for so long, while a comparison is open")
	fs.DurationVar((*time.Duration)(&f.change.Measure), "measure", 0,
		"length of every window (default 3s)")
	fs.DurationVar((*time.Duration)(&f.change.Warmup), "warmup", 0,
		"longest warm-up of a service that is not steady earlier (default 20s)")
	fs.Uint64Var(&f.seed, "seed", 42, "of order and arrivals")
	fs.Float64Var(&f.options.CPUs, "cpus", 0, "cores of a service (default: half of all)")
	fs.TextVar(&f.memory, "memory", strictyaml.Size(0),
		"memory of a service, as 512MiB (default: half of what is free)")
	f.by = decisive[0]
	cli.OneOf(c, &f.by, "by", "what decides; it sees smaller differences than the other numbers",
		decisive...)
	fs.BoolVar(&f.again, "again", true,
		"measure the first service twice a block, to see the noise")
	fs.BoolVar(&f.plan, "plan", false, "start and ask each service, then print what would run")
	fs.StringVar(&f.out, "out", "", "folder of the results (default: .prony/versus/TIME)")
	return c
}

// given looks at what depends on whether a flag was given.
func (f *versusFlags) given(is func(string) bool) error {
	if is("for") && is("blocks") {
		return cli.Usagef("--for and --blocks: give one of them: a time, or a fixed design")
	}
	if is("seed") {
		f.change.Seed = &f.seed
	}
	return checkGenerators(f.change.Generators, f.options.Connections, is)
}

// check says what is wrong with the line, or gives what it asks for.
func (f *versusFlags) check(args []string) ([]adhoc.Source, []suite.Request, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	var sources []adhoc.Source
	for _, command := range args {
		if strings.TrimSpace(command) == "" {
			return nil, nil, cli.Usagef("%q: the command of a service is empty, perhaps because a "+
				"variable of your script is not set; write the command, or leave it out", command)
		}
		sources = append(sources, adhoc.Source{Way: adhoc.Command(command), Dir: dir})
	}
	for _, url := range f.urls {
		sources = append(sources, adhoc.Source{Way: adhoc.URL(url), Remote: f.remote, Dir: dir})
	}
	for _, image := range f.images {
		sources = append(sources, adhoc.Source{Way: adhoc.Image{Name: image, Port: f.port},
			Dir: dir})
	}
	for _, revision := range f.revisions {
		if strings.HasPrefix(revision, "-") {
			return nil, nil, cli.Usagef("--git %q: no revision begins with -; name a revision, "+
				"such as main or HEAD~1", revision)
		}
		sources = append(sources, adhoc.Source{Dir: dir,
			Way:   adhoc.Revision{Git: revision, Start: adhoc.Command(f.command)},
			Steps: [][]string{{"sh", "-c", f.build}}})
	}
	switch {
	case len(sources) == 0:
		return nil, nil, cli.Usagef("name a service by the command that starts it, as prony " +
			"versus './app' --get /; see prony versus --help")
	case len(f.revisions) > 0 && (f.build == "" || f.command == ""):
		return nil, nil, cli.Usagef("--git: say what builds a revision with --build, and what " +
			"starts it with --run")
	case len(f.revisions) == 0 && f.build+f.command != "":
		return nil, nil, cli.Usagef("--build and --run are for --git: name the revisions")
	case f.port != 0 && len(f.images) == 0 || f.port < 0 || f.port > math.MaxUint16:
		return nil, nil, cli.Usagef("--port %d: it is where the service of an --image listens",
			f.port)
	case len(f.remote) > 0 && len(f.urls) == 0:
		return nil, nil, cli.Usagef("--remote is for --url: name the services that run there")
	case len(f.names) > len(sources):
		return nil, nil, cli.Usagef("-n: %d names for %d services", len(f.names), len(sources))
	case len(f.gets)+len(f.requests) == 0:
		return nil, nil, cli.Usagef("say what to ask for: --get /path, or --request 'POST /path'")
	case f.by == "capacity" && f.options.SLO == "":
		return nil, nil, cli.Usagef("--by capacity: say with --slo what a user is to be promised")
	case f.options.Blocks < 1 || f.options.Connections < 1 || f.startup <= 0:
		return nil, nil, cli.Usagef("--blocks, --connections and --startup: want more than nothing")
	}
	if f.change.For < 0 || f.change.Measure < 0 || f.change.Warmup < 0 {
		return nil, nil, cli.Usagef("--for, --measure and --warmup: want more than nothing")
	}
	for i, name := range f.names {
		sources[i].Name = name
	}
	if f.again {
		first := sources[0]
		first.Again = true
		sources = append(sources, first)
	}
	requests, err := f.asked()
	return sources, requests, err
}

// asked are the requests, as the flags have them.
func (f *versusFlags) asked() (out []suite.Request, err error) {
	headers := map[string]suite.Text{}
	for _, field := range f.headers {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return nil, cli.Usagef("-H %q: want 'Name: value'", field)
		}
		headers[strings.TrimSpace(name)] = suite.Text(strings.TrimSpace(value))
	}
	for _, text := range append(append([]string{}, f.gets...), f.requests...) {
		r, err := adhoc.ParseRequest(text)
		if err != nil {
			return nil, cli.Usage(err)
		}
		r.Headers = headers
		if !strings.HasPrefix(r.Request, "GET ") && !strings.HasPrefix(r.Request, "HEAD ") {
			r.Body, r.Type = f.body, f.kind
		}
		out = append(out, r)
	}
	return out, nil
}

// limits fills in what the machine decides.
func (f *versusFlags) limits() error {
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	if f.options.CPUs == 0 {
		f.options.CPUs = float64(max(1, len(cores)/2))
	}
	if f.options.MemoryBytes = int64(f.memory); f.memory == 0 {
		f.options.MemoryBytes = host.AvailableBytes() / 2
	}
	return nil
}

// trust reads the certificates that are believed, and makes the usual protocol none of its own.
func (f *versusFlags) trust() error {
	to := &f.options.Speaks
	if to.Protocol == suite.Protocols[0] {
		to.Protocol = ""
	}
	var err error
	to.TLS.CA = f.ca
	to.TLS.PEM, err = trusted(f.ca, true)
	return cli.Usage(err)
}

func (a *app) versus(ctx context.Context, args []string, f *versusFlags) error {
	sources, requests, err := f.check(args)
	if err != nil {
		return err
	}
	f.options.Stay = len(f.urls)+len(f.images) > 0
	if err := errors.Join(f.limits(), f.trust()); err != nil {
		return err
	}
	speaks := &f.options.Speaks
	if speaks.Protocol, err = adhoc.Protocol(sources, speaks.Protocol); err != nil {
		return cli.Usage(err)
	}
	// What contradicts is found before anything is started.
	alone := make([]adhoc.Held, len(requests))
	for i, r := range requests {
		alone[i].Request = r
	}
	if _, err := adhoc.Suite(alone, f.options); err != nil {
		return cli.Usage(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	show := &progressLine{w: a.stderr}
	l := &lab.Lab{Root: dir, World: a.world, Tell: show}
	ready := f.ready
	if ready == "" && len(f.gets) > 0 {
		ready = f.gets[0]
	}
	services, err := servicesOf(ctx, l, sources, ready, f.startup)
	if err != nil {
		return err
	}
	wish := lab.Wish{Own: &lab.Own{Services: services,
		Results: filepath.Join(dir, record.Kept, adhoc.Name)}, Host: "any", Version: version(),
		Command: append([]string{"prony"}, a.args...), Out: f.out}
	if wish.Own.Suite, err = f.meet(ctx, l, services, requests); err != nil {
		return err
	}
	if f.plan {
		p, err := l.Plan(wish)
		if err != nil {
			return err
		}
		return printPlan(a.stdout, p)
	}
	results, err := l.Run(ctx, wish)
	show.end()
	ended := a.conclude(results, err, false)
	if err == nil && isRun(results) && len(services) > 1 {
		ended = errors.Join(ended, a.answer(results, services, f))
	}
	return ended
}

// decisive are the words that --by takes, and the measures that an answer gives of all that compare
// has. Where there is no such number the first of the others decides.
var (
	decisive  = []string{"cpu", "throughput", "p99", "capacity"}
	measureOf = map[string]string{"cpu": "peak/cpu_per_request", "throughput": "peak/throughput",
		"p99": "half/p99", "capacity": "users/capacity"}
)

// measuresBy are the measures, with that of a word in front.
func measuresBy(word string) []string {
	measures := []string{measureOf[word]}
	for _, other := range decisive {
		if other != word {
			measures = append(measures, measureOf[other])
		}
	}
	return measures
}

// dearer is the difference that most ask for: a change that makes a service dearer by 5 %.
const dearer = 0.05

// answer says of each service how it stands to the first one, the first's second self among them.
func (a *app) answer(dir string, services lab.Catalog, f *versusFlags) error {
	side, err := a.side(dir)
	if err != nil {
		return err
	}
	rows, enough := [][]string{{"against " + services[0].Name}}, ""
	measures := measuresBy(f.by)
	for i, s := range services[1:] {
		from, to := side, side
		from.Target, to.Target = services[0].Name, s.Name
		c, err := compareSides(from, to, compare.Options{Metrics: measures, First: measures,
			Refused: allTheSame})
		if err != nil {
			return err
		}
		name := s.Name
		for _, texts := range c.Answers() {
			rows = append(rows, append([]string{name}, texts...))
			name = ""
		}
		if noise := f.again && i == len(services)-2; !noise && enough == "" {
			enough = c.Enough(dearer)
		}
	}
	fmt.Fprintln(a.stdout)
	if err := a.grid(rows); err != nil || enough == "" {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, format.Wrap("", enough, 92, 0))
	return err
}

// meet makes the suite of a line, which holds all services against what they have in common.
func (f *versusFlags) meet(ctx context.Context, l *lab.Lab, services lab.Catalog,
	requests []suite.Request) (*suite.Suite, error) {
	distinct := services[:len(services)]
	if f.again {
		distinct = services[:len(services)-1]
	}
	held, err := meet(ctx, l, distinct, f.startup, requests, f.options.Speaks, f.ignore)
	if err != nil {
		return nil, err
	}
	if len(services) > 1 {
		f.options.Baseline = services[0].Name
	}
	s, err := adhoc.Suite(held, f.options)
	if err != nil {
		return nil, cli.Usage(err)
	}
	if err := s.Override(f.change); err != nil {
		return nil, cli.Usage(err)
	}
	return s, nil
}
