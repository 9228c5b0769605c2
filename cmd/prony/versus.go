//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/report/compare"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial/lab"
	"prony.example/load/network"
	"prony.example/record/metric"
)

// versusFlags are the settings of a comparison.
type versusFlags struct {
	names     []string
	revisions []string
	urls      []string
	remote    []string
	images    []string
	composes  []string
	launcher  string
	port      int
	build     string
	command   string

	gets     []string
	requests []string
	headers  []string
	body     string
	kind     string
	ca       string

	turn  turnFlags
	asked lab.Comparison // without the sources and the requests
	plan  bool
	seed  uint64
}

const versusAbout = `Versus compares services of your own, in any language, without changes to them.
Versus starts the services by their commands under equal limits and warms them up. Then versus loads
one service at a time for some tens of milliseconds, in random order, while the others are stopped
(a service of --url runs on). This way, all services meet the same machine. The report has each
difference with its interval, and a verdict on each number.

A service listens on 127.0.0.1 at the port in $PORT, or at {port} in its command. A service has your
environment. You can set variables in front of a command; versus passes commands with shell syntax
to sh. With --git, each revision of the repository is cloned, built by --build and started by --run
in its own folder. With --url, running services are compared as they are, without limits; CPU and
memory are known only for services on this machine, and --remote allows another machine. With
--image, each service runs as a container of an image of the local Docker engine, and with
--launcher kubernetes as a pod. With --compose, Compose starts the service with its dependencies.
All kinds of services can be compared with each other.

Before it measures, versus sends each request three times. Status and body that all responses have
in common are the expected response; a different response under load is an error. If bodies vary,
versus prints where, and checks the fields of JSON that stay the same. Services with different
responses are not compared. With --ignore-body, versus checks the status only.

The first service also runs a second time in each start, as NAME-again. Differences between these
two are noise. You can also measure one service alone.

One metric decides and is fixed before the run: CPU time per request at the peak, or the one of
--by. The deciding metric is tested at a significance level of 4 %. All other metrics share 1 %, so
they need larger differences to be significant.

To continue an interrupted comparison, type prony run --resume with the folder of its results, in
the same folder as before.

The exit code is 0 if every trial is VALID or SUSPECT, and 4 if a trial is INVALID or failed. The
exit code is 1 if the services could not be compared, and 2 for a wrong command line. A trial with
sound slices does not count as INVALID if only its window is.`

const versusExamples = `  prony versus './app' 'GOGC=400 ./app' --get /items/1
  prony versus 'python3 -m http.server --bind 127.0.0.1 {port}' --get /
  prony versus --git main --git HEAD --build 'go build -o app .' --run ./app --get /items/1
  prony versus --url http://127.0.0.1:8081 --url http://127.0.0.1:8082 --get /items/1
  prony versus --image app:1.2 --image app:1.3 --get /items/1
  prony versus --image app:1.2 --image app:1.3 --launcher kubernetes --get /items/1
  prony versus --compose old/compose.yaml:web --compose new/compose.yaml:web --get /items/1
  prony versus ./app --image app:1.3 --url http://127.0.0.1:8081 --get /items/1
  prony versus --protocol h2c ./old ./new --get /items/1
  prony versus -n old -n new './old -p {port}' './new -p {port}' --request 'POST /sum' \
      --body '{"a":1}' --type application/json`

func (a *app) versusCmd() *cobra.Command {
	f := &versusFlags{}
	c := &cobra.Command{
		Use: "versus [COMMAND...]", Short: "Compare services of your own: which is faster?",
		Args: cobra.ArbitraryArgs, Long: versusAbout, Example: versusExamples,
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(extents(c), f.given(c.Flags().Changed),
				f.turn.check(c)); err != nil {
				return err
			}
			return a.versus(c.Context(), args, f)
		},
	}
	fs := c.Flags()
	fs.StringArrayVarP(&f.names, "name", "n", nil,
		"name of a service, in the order of the services; repeatable")
	fs.StringArrayVar(&f.revisions, "git", nil,
		"revision of the repository in this folder; repeatable")
	fs.StringArrayVar(&f.urls, "url", nil, "running service, such as "+
		"http://127.0.0.1:8081; repeatable")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	fs.StringArrayVar(&f.images, "image", nil, "image of the local Docker engine to run, such "+
		"as app:1.2; repeatable")
	fs.StringArrayVar(&f.composes, "compose", nil, "service of a Compose file, such as web or "+
		"old/compose.yaml:web (default file: compose.yaml); repeatable")
	f.launcher = imageLaunchers[0]
	cli.OneOf(c, &f.launcher, "launcher", "how images are started: as containers, or as pods "+
		"of the cluster of kubectl", imageLaunchers...)
	fs.IntVar(&f.port, "port", 0, "fixed port of the services (default: one port for each, in "+
		"$PORT; with --image and --compose: the only port of the image or the file, else $PORT)")
	fs.StringVar(&f.build, "build", "", "with --git: shell command that builds a revision")
	fs.StringVar(&f.command, "run", "", "with --git: command that starts a revision")
	fs.StringArrayVar(&f.gets, "get", nil,
		"path to request; repeatable, as a mix of equal parts")
	fs.StringArrayVar(&f.requests, "request", nil,
		"request with its method, such as 'POST /items'; repeatable")
	fs.StringArrayVarP(&f.headers, "header", "H", nil,
		"header field, such as 'Name: value'; repeatable")
	fs.StringVar(&f.body, "body", "", "body of requests other than GET")
	fs.StringVar(&f.kind, "type", "", "media type of the body (default text/plain)")
	fs.BoolVar(&f.asked.StatusOnly, "ignore-body", false, "check only the status of responses")
	speaks := &f.asked.Options.Speaks
	speaks.Protocol = suite.Protocols[0]
	cli.OneOf(c, &speaks.Protocol, "protocol", "protocol of the services", suite.Protocols...)
	fs.IntVar(&speaks.Streams, "streams", 0,
		"concurrent requests on each connection (h2, h2c, h3, gRPC)")
	fs.StringVar(&speaks.Unix, "unix", "", "Unix socket of the services; {port} in its path "+
		"is $PORT")
	fs.BoolVarP(&speaks.TLS.Insecure, "insecure", "k", false, "accept any certificate")
	fs.StringVar(&f.ca, "ca", "", "PEM file with the certificates to trust")
	fs.StringVar(&f.asked.Ready, "ready", "", "path that returns status 200 when a service is "+
		"ready, or - to wait for its first connection (default: the first constant path of "+
		"--get, else the connection)")
	fs.DurationVar(&f.asked.Startup, "startup", 30*time.Second,
		"longest time from the start of a service until it is ready")
	cli.Joined(c, &f.asked.Options.SLO, "slo", "also find the highest rate that meets these "+
		"objectives, such as 'p99<20ms,errors<0.1%'; repeatable")
	f.measured(c)
	f.turn.flags(c)
	fs.BoolVar(&f.plan, "plan", false, "start each service, send its requests, and print the plan")
	fs.StringVar(&f.asked.Out, "out", "", "folder of the results (default: .prony/versus/TIME)")
	return c
}

// measured declares the flags of the measurement.
func (f *versusFlags) measured(c *cobra.Command) {
	fs := c.Flags()
	fs.IntVarP(&f.asked.Options.Connections, "connections", "c", 64, "number of connections of "+
		"the loads")
	fs.IntVar(&f.asked.Change.Generators, "generators", 0, generatorsHelp)
	fs.IntVar(&f.asked.Options.Blocks, "blocks", 6,
		"number of starts of each service, which are its repetitions")
	interleaveFlags(c, &f.asked.Change)
	fs.DurationVar((*time.Duration)(&f.asked.Change.For), "for", 0,
		"measuring time, instead of a number of starts; the run ends early if all comparisons "+
			"are decided")
	fs.DurationVar((*time.Duration)(&f.asked.Change.Measure), "measure", 0,
		"length of every window (default 1s; 3s with --interleave blocks)")
	fs.DurationVar((*time.Duration)(&f.asked.Change.Warmup), "warmup", 0,
		"longest warm-up of a service whose rate is not steady earlier (default 20s)")
	fs.Uint64Var(&f.seed, "seed", 42, "seed of order and arrivals")
	fs.Float64Var(&f.asked.Options.CPUs, "cpus", 0, "number of cores of a service (default: half "+
		"of all cores)")
	fs.TextVar(&f.asked.Memory, "memory", strictyaml.Size(0),
		"memory limit of a service, such as 512MiB (default: an equal part of half of the "+
			"machine's memory, or less if less is free)")
	f.asked.By = compare.Decisive[0]
	cli.OneOf(c, &f.asked.By, "by",
		"metric that decides the comparison; it detects smaller differences than the "+
			"others", compare.Decisive...)
	fs.BoolVar(&f.asked.Again, "aa", true,
		"run the first service twice in each start, to show the noise")
}

// addIdle declares the flag for the state of idle cores.
func addIdle(c *cobra.Command, idle *string) {
	cli.OneOf(c, idle, "idle", "state of idle cores in a virtual machine (default: poll, if "+
		"permitted)", suite.Idling...)
}

// interleaveFlags declares the flags of the comparison's method.
func interleaveFlags(c *cobra.Command, o *suite.Override) {
	cli.OneOf(c, &o.Interleave, "interleave", "how services are compared (default: slices if "+
		"possible)",
		suite.Interleavings...)
	cli.OneOf(c, &o.Freeze, "freeze", "whether a service is stopped while others are loaded in "+
		"slices (default: on)", suite.Freezing...)
	addIdle(c, &o.Idle)
	c.Flags().Var((*networkList)(&o.Networks), "network", "network to simulate between load and "+
		"service: none, 'delay 5ms' or 'delay 5ms ± 1ms', the time added to each round trip; "+
		"repeatable, and every load then runs over each")
	c.Flags().DurationVar((*time.Duration)(&o.Slices), "slices", 0, "time in slices of each "+
		"target in each start (default: 2s or the suite's time, at most 5 × --measure)")
	c.Flags().TextVar(&o.Precision, "precision", suite.Percent(0), "target for the half width of "+
		"the 95 % interval, such as 1%: the scatter of the first --blocks starts decides how "+
		"many more starts run (with --for: within this time)")
	c.Flag("precision").DefValue = "" // an empty percentage prints no default
}

// networkList is the value of a repeatable flag.
type networkList []suite.Network

// Set implements pflag.Value.
func (l *networkList) Set(text string) error {
	d, err := network.Parse(text)
	if err == nil {
		*l = append(*l, suite.Network{Delay: d})
	}
	return err
}

// String implements pflag.Value.
func (l *networkList) String() string {
	var texts []string
	for _, n := range *l {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, ", ")
}

// Type implements pflag.Value.
func (l *networkList) Type() string { return "strings" }

// given checks and sets what depends on whether a flag was given.
func (f *versusFlags) given(is func(string) bool) error {
	bodiless := !slices.ContainsFunc(f.requests, func(text string) bool {
		method, _, _ := strings.Cut(text, " ")
		return !strings.HasPrefix(text, "/") && method != http.MethodGet &&
			method != http.MethodHead
	})
	err := refuse(is,
		noEffect{bodiless, "body type",
			"needs a request with a body, such as --request 'POST /sum'"},
		noEffect{f.body == "", "type", "needs --body"},
		noEffect{len(f.images) == 0, "launcher",
			"needs --image: other services cannot be started by it"})
	if err != nil {
		return err
	}
	if is("precision") {
		switch f.asked.By {
		case "cpu":
			f.asked.Change.Metric = metric.CPU
		case "throughput":
			f.asked.Change.Metric = metric.Throughput
		default:
			return cli.Usagef("--precision is possible only for CPU per request or throughput, "+
				"not for --by %s",
				f.asked.By)
		}
	}
	if is("seed") {
		f.asked.Change.Seed = &f.seed
	}
	return checkGenerators(f.asked.Change.Generators, f.asked.Options.Connections, is)
}

// sources returns the services of the command line, or a usage error.
func (f *versusFlags) sources(args []string) (sources []adhoc.Source, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, command := range args {
		if strings.TrimSpace(command) == "" {
			return nil, cli.Usagef("%q: the command of a service is empty, perhaps because "+
				"a variable of your script is not set; write the command, or remove this "+
				"argument", command)
		}
		sources = append(sources, adhoc.Source{Way: adhoc.Command(command), Port: f.port,
			Dir: dir})
	}
	for _, url := range f.urls {
		sources = append(sources, adhoc.Source{Way: adhoc.URL(url), Remote: f.remote, Dir: dir})
	}
	contained, err := f.contained(dir)
	if err != nil {
		return nil, err
	}
	sources = append(sources, contained...)
	for _, revision := range f.revisions {
		if strings.HasPrefix(revision, "-") {
			return nil, cli.Usagef("--git %q: a revision cannot begin with -; name a "+
				"revision, such as main or HEAD~1", revision)
		}
		sources = append(sources, adhoc.Source{Dir: dir, Port: f.port,
			Way:   adhoc.Revision{Git: revision, Start: adhoc.Command(f.command)},
			Steps: [][]string{{"sh", "-c", f.build}}})
	}
	return sources, nil
}

// check returns the sources and requests of the command line, or a usage error.
func (f *versusFlags) check(args []string) ([]adhoc.Source, []suite.Request, error) {
	sources, err := f.sources(args)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(sources) == 0:
		return nil, nil, cli.Usagef("no service is named: pass the command that starts it, such " +
			"as prony versus './app' --get /; see prony versus --help")
	case len(f.revisions) > 0 && (f.build == "" || f.command == ""):
		return nil, nil, cli.Usagef("--git needs --build with the command that builds a " +
			"revision, and --run with the command that starts it")
	case len(f.revisions) == 0 && f.build+f.command != "":
		return nil, nil, cli.Usagef("--build and --run need --git: name the revisions")
	case f.port < 0 || f.port > math.MaxUint16:
		return nil, nil, cli.Usagef("--port must be between 1 and %d, got %d", math.MaxUint16,
			f.port)
	case f.port != 0 && len(f.urls) == len(sources):
		return nil, nil, cli.Usagef("--port %d needs a command, --git, --image or --compose: a "+
			"running service has the port of its --url", f.port)
	case len(f.remote) > 0 && len(f.urls) == 0:
		return nil, nil, cli.Usagef(
			"--remote needs --url: add --url for each service on another host")
	case len(f.names) > len(sources):
		return nil, nil, cli.Usagef("-n: there are %d names for %d "+
			"services", len(f.names), len(sources))
	case len(f.gets)+len(f.requests) == 0:
		return nil, nil, cli.Usagef("no request is named: add --get /path, or --request 'POST " +
			"/path'")
	case f.asked.By == "capacity" && f.asked.Options.SLO == "":
		return nil, nil, cli.Usagef("--by capacity needs objectives: add --slo, such as " +
			"--slo 'p99<20ms'")
	case f.asked.Options.Blocks < 1 || f.asked.Options.Connections < 1 || f.asked.Startup <= 0:
		return nil, nil, cli.Usagef("--blocks, --connections and --startup must be greater than 0")
	}
	for i, name := range f.names {
		sources[i].Name = name
	}
	requests, err := f.asks()
	return sources, requests, err
}

// contained returns the sources of containers and pods.
func (f *versusFlags) contained(dir string) (out []adhoc.Source, err error) {
	for _, image := range f.images {
		out = append(out, adhoc.Source{Dir: dir,
			Way: adhoc.Image{Name: image, Port: f.port, Launcher: f.launcher}})
	}
	for _, text := range f.composes {
		way, err := adhoc.ParseCompose(text)
		if err != nil {
			return nil, cli.Usagef("--compose: %w", err)
		}
		out = append(out, adhoc.Source{Dir: dir,
			Way: adhoc.Compose{Compose: way, Port: f.port}})
	}
	switch {
	case f.asked.Options.Speaks.Unix != "" && len(out) > 0:
		return nil, cli.Usagef("--unix needs commands or --git: the Unix socket of a container " +
			"is not accessible on this machine")
	}
	return out, nil
}

// imageLaunchers are the launchers of images.
var imageLaunchers = suite.Launchers[1:]

// asks returns the requests of the flags.
func (f *versusFlags) asks() (out []suite.Request, err error) {
	headers := map[string]suite.Text{}
	for _, field := range f.headers {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return nil, cli.Usagef("-H %q must have the form 'Name: value'", field)
		}
		if name = strings.TrimSpace(name); headers[name] != "" {
			return nil, cli.Usagef("-H %s is given twice; write its values into one field", name)
		}
		headers[name] = suite.Text(strings.TrimSpace(value))
	}
	for _, text := range append(append([]string{}, f.gets...), f.requests...) {
		r, err := adhoc.ParseRequest(text)
		if err != nil {
			return nil, cli.Usage(err)
		}
		_, path, _ := strings.Cut(r.Request, " ")
		if _, err := address.Path(path); err != nil {
			return nil, cli.Usagef("request %q: %w", text, err)
		}
		r.Headers = headers
		if !strings.HasPrefix(r.Request, "GET ") && !strings.HasPrefix(r.Request, "HEAD ") {
			r.Body, r.Type = f.body, f.kind
		}
		out = append(out, r)
	}
	return out, nil
}

// trust reads the trusted certificates, and clears the default protocol.
func (f *versusFlags) trust() error {
	to := &f.asked.Options.Speaks
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
	if err := f.trust(); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c := f.asked
	c.Sources, c.Requests, c.Resume = sources, requests, a.resumes
	c.Command, c.Version = append([]string{"prony"}, a.args...), version()
	if c.Ready == "" {
		gets := suite.Scenario{Requests: requests[:len(f.gets)]}
		c.Ready = (&suite.Suite{Scenarios: []suite.Scenario{gets}}).FirstGet()
	}
	show := &progressLine{w: a.stderr}
	l := &lab.Lab{Root: dir, World: a.world, Tell: show}
	f.turn.set(l)
	if f.plan {
		p, err := l.PlanVersus(ctx, c)
		if err != nil {
			return err
		}
		return printPlan(a.stdout, p)
	}
	answer, err := l.Versus(ctx, c)
	show.end()
	if answer.Run == nil {
		return err
	}
	if len(answer.Against) > 0 && answer.Refused == nil {
		if err := a.answer(answer); err != nil {
			return err
		}
	}
	ended := a.concluded(a.reported(answer.Run, answer.Study), answer.Dir, err,
		reportFlags{answered: true})
	return errors.Join(ended, answer.Refused)
}

// answer prints how each service differs from the first one: as a sentence, then by metric.
func (a *app) answer(answer lab.Answer) error {
	for _, c := range answer.Against {
		if c.Name == answer.First+adhoc.AgainSuffix {
			continue // the control needs no sentence
		}
		text := format.Wrap("", c.Sentence(answer.First, c.Name), 92, 0)
		if _, err := fmt.Fprintln(a.stdout, text); err != nil {
			return err
		}
	}
	rows := [][]string{{"against " + answer.First}}
	for _, c := range answer.Against {
		name := c.Name
		for _, texts := range c.Answers() {
			rows = append(rows, append([]string{name}, texts...))
			name = ""
		}
	}
	if len(rows) == 1 { // no trial has numbers; the report says why
		return nil
	}
	fmt.Fprintln(a.stdout)
	if err := a.grid(rows); err != nil {
		return err
	}
	var below []string
	for _, c := range answer.Against {
		for _, text := range c.Below() {
			if !slices.Contains(below, text) {
				below = append(below, text)
			}
		}
	}
	if answer.Enough != "" {
		below = append(below, answer.Enough)
	}
	for _, text := range below {
		if _, err := fmt.Fprintln(a.stdout, format.Wrap("", text, 92, 0)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.stdout)
	return err
}
