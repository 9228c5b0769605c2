package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// realServer is a server that is loaded over each of its protocols.
type realServer struct {
	name    string
	version string   // command that prints its version
	files   []string // templates in serversDir, of settings
	command string   // template of the command that starts it in the foreground
	log     string   // access log below its folder; empty: GET /count answers its counter
	schemes string   // protocols as prony load's URLs name them
	short   string   // how it ends connections early
	reload  syscall.Signal
	reloads string // protocols of loads during which it reloads; the first is in the second set
}

const (
	python = "{{.Python}}/venv/bin/"
	java   = "java -cp {{.Java}}/target/classes:{{.Java}}/target/jars/* "
	ports  = " {{.Dir}} {{.Plain}} {{.TLS}} {{.H2C}}"
	all    = "http https h2 h2c"
	tenth  = "10 requests, 1 s idle"
	any10  = "about 10 requests, 1 s idle"
)

// realServers are all servers. The first four have packages of Debian that .ci/packages installs.
var realServers = []realServer{
	{"nginx", "nginx -v", []string{"nginx.conf"}, "nginx -c {{.Dir}}/nginx.conf -e stderr",
		"access.log", all, tenth, syscall.SIGHUP, all},
	{"HAProxy", "haproxy -v", []string{"haproxy.conf"}, "haproxy -W -f {{.Dir}}/haproxy.conf",
		"said.log", all, any10, syscall.SIGUSR2, "h2 h2c http https"},
	{"Apache httpd", "apache2 -v", []string{"apache.conf"},
		"apache2 -D FOREGROUND -f {{.Dir}}/apache.conf", "access.log", all,
		"5 requests, 1 s idle", syscall.SIGUSR1,
		// During a reload, it resets new HTTP/2 connections and leaves accepted streams without a
		// response: these are its failures.
		"http https"},
	{"lighttpd", "lighttpd -v", []string{"lighttpd.conf"}, "lighttpd -D -f {{.Dir}}/lighttpd.conf",
		"access.log", all, tenth, 0, ""},
	{"Caddy", "caddy version", []string{"caddy.conf"},
		"caddy run --adapter caddyfile --config {{.Dir}}/caddy.conf", "access.log", all, any10,
		0, ""},
	{"H2O", "h2o -v", []string{"h2o.conf"}, "h2o -c {{.Dir}}/h2o.conf", "access.log", all,
		"1 s idle", 0, ""},
	{"Traefik", python + "traefik version", []string{"traefik.yml", "traefik-routes.yml"},
		python + "traefik --configFile={{.Dir}}/traefik.yml", "access.log", all, tenth, 0, ""},
	{"Envoy", python + "envoy --version", []string{"envoy.yaml"},
		python + "envoy -c {{.Dir}}/envoy.yaml --concurrency 1 --use-dynamic-base-id " +
			"--log-level error", "access.log", all, tenth, 0, ""},
	{"Go net/http", "go version", nil, "{{.Go}}/server" + ports, "", all, tenth, 0, ""},
	{"Node.js", "node --version", []string{"node.mjs"}, "node {{.Dir}}/node.mjs" + ports, "",
		all, tenth, 0, ""},
	{"Jetty", "", nil, java + "Jetty" + ports, "", all, any10, 0, ""},
	{"Tomcat", "", nil, java + "TomcatServer" + ports, "", all, tenth, 0, ""},
	{"Undertow", "", nil, java + "UndertowServer" + ports, "", all, any10, 0, ""},
	{"uvicorn", python + "uvicorn --version", nil, python + "uvicorn app:asgi --log-level error " +
		"--host 127.0.0.1 {{if .Secure}}--port {{port .TLS}} --ssl-certfile {{.Dir}}/cert.pem " +
		"--ssl-keyfile {{.Dir}}/key.pem{{else}}--port {{port .Plain}}{{end}}" +
		"{{if .Short}} --timeout-keep-alive 1{{end}}", "", "http https", any10, 0, ""},
	{"hypercorn", python + "pip show hypercorn", []string{"hypercorn.conf"},
		python + "hypercorn app:asgi --config {{.Dir}}/hypercorn.conf", "", "http https h2 h2c",
		tenth, 0, ""},
	{"gunicorn", python + "gunicorn --version", nil, python + "gunicorn app:wsgi " +
		"--worker-class gthread --threads 8 --workers 1 --access-logformat %(U)s " +
		"--access-logfile {{.Dir}}/access.log --log-level error " +
		"--bind {{if .Secure}}{{.TLS}} --certfile {{.Dir}}/cert.pem --keyfile {{.Dir}}/key.pem" +
		"{{else}}{{.Plain}}{{end}} " +
		"{{if .Short}}--keep-alive 1{{else}}--keep-alive 5{{end}}",
		"access.log", "http https", "1 s idle", 0, ""},
	{"Waitress", python + "pip show waitress", nil, python + "waitress-serve " +
		"--listen={{.Plain}} --threads=1 " +
		"{{if .Short}}--channel-timeout=1 --cleanup-interval=1 {{end}}app:wsgi", "", "http",
		"1 s idle", 0, ""},
	{"Cheroot", python + "pip show cheroot", nil, python + "python {{.Python}}/cheroot_server.py " +
		"{{if .Secure}}{{.TLS}} {{.Dir}}/cert.pem {{.Dir}}/key.pem{{else}}{{.Plain}}{{end}}", "",
		"http https", "1 s idle", 0, ""},
}

// serverCase is one load of a server.
type serverCase struct {
	server *realServer
	scheme string
	short  bool
	model  string
	once   bool // whether it belongs to the second set
}

// Models of serverCase.
const (
	closedModel = "closed"
	openModel   = "open"
	idleModel   = "idle"   // open, with pauses about as long as the idle timeout
	reloadModel = "reload" // closed, and the server reloads its settings twice
)

func (c serverCase) String() string {
	keep := "default"
	if c.short {
		keep = "short"
	}
	return strings.Join([]string{c.server.name, c.scheme, keep, c.model}, ", ")
}

// serverCases lists all loads.
func serverCases() (cases []serverCase) {
	for i := range realServers {
		s := &realServers[i]
		second := slices.Contains([]string{"nginx", "HAProxy", "Go net/http"}, s.name)
		for n, scheme := range strings.Fields(s.schemes) {
			for _, model := range []string{closedModel, openModel, idleModel} {
				cases = append(cases, serverCase{s, scheme, true, model,
					second && n == 0 && model == closedModel})
			}
			for _, model := range []string{closedModel, openModel} {
				cases = append(cases, serverCase{s, scheme, false, model, false})
			}
		}
		for n, scheme := range strings.Fields(s.reloads) {
			cases = append(cases, serverCase{s, scheme, false, reloadModel, second && n == 0})
		}
	}
	return cases
}

// address returns the address of the case's protocol.
func (c serverCase) address(p *place) string {
	switch c.scheme {
	case "https", "h2":
		return p.TLS
	case "h2c":
		if strings.HasPrefix(c.server.name, "hypercorn") {
			return p.Plain
		}
		return p.H2C
	}
	return p.Plain
}

// args returns the arguments of prony load.
func (c serverCase) args(t *testing.T, p *place) []string {
	t.Helper()
	args := []string{"load", c.scheme + "://" + c.address(p) + "/counted?n={seq}", "-k", "-c", "4",
		"--lead-in", "0s", "--json", "--view", "none"}
	if strings.HasPrefix(c.scheme, "h2") {
		args = append(args, "--streams", "4")
	}
	switch c.model {
	case closedModel:
		if !c.short { // nginx ends a connection after 1,000 requests by default
			return append(args, "-n", "5000")
		}
		return append(args, "-n", "1000")
	case openModel:
		return append(args, "-n", "1000", "--rate", "500")
	case reloadModel:
		return append(args, "-d", "2s")
	}
	return append(args, "--trace", pausing(t, p.Dir), "-d", "7s")
}

// pausing writes a trace with bursts of requests, one for each connection. The pauses between them
// are the idle timeout of 1 s and up to 2.5 ms more or less, so that requests cross closes.
func pausing(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("# prony trace 1\n")
	at := 0.1
	for i := range 6 {
		for range 4 {
			fmt.Fprintf(&text, "%.6f\n", at)
		}
		at += 1 + 0.001*(float64(i)-2.5)
	}
	path := filepath.Join(dir, "pausing.trace")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// loaded is what a process of prony load printed.
type loaded struct {
	judged
	exit   int
	stderr string
}

// loadProcess runs prony in a process of its own.
func loadProcess(t *testing.T, args []string, meanwhile func()) loaded {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "PRONY_TEST_MAIN=1"), &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	cmd.Wait() //nolint:errcheck // the exit code is checked
	l := loaded{exit: cmd.ProcessState.ExitCode(), stderr: errs.String()}
	if err := json.Unmarshal(out.Bytes(), &l.judged); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, l.exit, &out, &errs)
	}
	return l
}

// hostRules are the rules whose findings come from a busy machine, or from the few requests of
// these loads, never from the way in which a server ends connections.
var hostRules = []string{"arrivals", "batch", "bursts", "capacity", "delivered", "drift",
	"generator", "lag", "little", "memory", "neighbors", "quiet", "rate", "run delay", "samples",
	"settled", "stalled", "steal", "timer", "waited"}

// spoiltBy returns the findings that make a load INVALID, of the host's rules or of the others.
func spoiltBy(v record.Verdict, host bool) (rules []string) {
	for _, f := range v.Findings {
		if f.Grade == record.Invalid && slices.Contains(hostRules, f.Rule) == host {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

// ofServer returns the verdict without the host's rules, and the rules of its findings.
func ofServer(v record.Verdict) (grade string, rules []string) {
	grade = record.Valid
	for _, f := range v.Findings {
		switch {
		case slices.Contains(hostRules, f.Rule):
			continue
		case f.Grade == record.Invalid || grade == record.Valid:
			grade = f.Grade
		}
		rules = append(rules, f.Rule)
	}
	slices.Sort(rules)
	return grade, slices.Compact(rules)
}

// spare bounds the repetitions of a load that the machine spoiled.
const spare = 5

// offer loads the server of a case, which each time is a new process. For the table, it repeats
// loads that the machine spoiled. It reports whatever else is wrong.
func (c serverCase) offer(t *testing.T) serverResult {
	t.Helper()
	for try := 1; ; try++ {
		p := c.place(t)
		server := c.server.start(t, p, c.scheme, c.address(p))
		got := loadProcess(t, c.args(t, p), func() {
			if c.model == reloadModel {
				server.reload(t)
			}
		})
		if c.again(t, &got, try) {
			server.stop(t)
			continue
		}
		c.check(t, &got, server.counted(t, c.scheme, c.address(p)))
		server.stop(t)
		if t.Failed() {
			t.Logf("%s%s", got.stderr, server.output())
		}
		return c.result(t, p, &got)
	}
}

// check requires a load without errors or INVALID findings except for those that a busy machine
// causes. The server has counted each request once, or again if it was retried.
func (c serverCase) check(t *testing.T, got *loaded, counted int64) {
	t.Helper()
	l := &got.Load
	if len(spoiltBy(got.Verdict, false)) > 0 || unspoilt(got.exit) != 0 ||
		forTable() && got.exit != 0 {
		t.Errorf("%v: exit %d, %+v\n%s", c, got.exit, got.Verdict, got.stderr)
	}
	if l.Errors != (record.Errors{}) || l.Censored != 0 || l.Answered != l.Scheduled ||
		l.Answered < 24 {
		t.Errorf("%v: %d of %d answered, %d censored, %+v", c, l.Answered, l.Scheduled, l.Censored,
			l.Errors)
	}
	if c.model == reloadModel && l.Reconnects == 0 {
		t.Errorf("%v: no reconnects", c)
	}
	if counted < l.Answered || counted > l.Answered+l.Retried {
		t.Errorf("%v: %d answered and %d retried, but the server counted %d", c, l.Answered,
			l.Retried, counted)
	}
	grade, rules := ofServer(got.Verdict)
	t.Logf("%v: %d answered, server counted %d, %d reconnects, %d retried, %s %q", c, l.Answered,
		counted, l.Reconnects, l.Retried, grade, rules)
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// versionOf returns the version number of a server.
func (s *realServer) versionOf(t *testing.T, p *place) string {
	t.Helper()
	if s.version == "" {
		jar, err := filepath.Glob(filepath.Join(p.Java, "target/jars", map[string]string{
			"Jetty": "jetty-server", "Tomcat": "tomcat-embed-core", "Undertow": "undertow-core",
		}[s.name]+"-*.jar"))
		if err != nil || len(jar) != 1 {
			t.Fatalf("%q, %v", jar, err)
		}
		return versionNumber.FindString(filepath.Base(jar[0]))
	}
	words := strings.Fields(p.fill(t, s.version))
	return versionNumber.FindString(testsets.Version(words[0], words[1:]...))
}

// Real servers cause no error and no INVALID while they close connections: one load of three with
// short keep-alive, and of two while they reload. In the third set, each of all servers is loaded
// over all its protocols, by all models, and also with its default keep-alive; the results are the
// table of docs/formats/servers.md.
func TestRealServers(t *testing.T) {
	needs := testsets.Needs{Files: []string{serverFiles}}
	testsets.Once(t, "real servers", needs)
	var results []serverResult
	for _, c := range serverCases() {
		t.Run(c.String(), func(t *testing.T) {
			if !c.once {
				testsets.Long(t, c.String(), needs)
			}
			if r := c.offer(t); !t.Failed() {
				results = append(results, r)
			}
		})
	}
	if forTable() {
		keepResults(t, results)
	}
}

// forTable reports whether the results are for the table.
func forTable() bool { return os.Getenv(testsets.Set) == testsets.Later }

// place makes the place of the case's server.
func (c serverCase) place(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.Short, p.Secure = c.short, c.scheme == "https" || c.scheme == "h2"
	p.HTTP2 = c.scheme == "h2"
	return p
}

// again reports whether the machine alone made a load of the table INVALID, and there may be
// another.
func (c serverCase) again(t *testing.T, got *loaded, try int) bool {
	t.Helper()
	busy := spoiltBy(got.Verdict, true)
	if !forTable() || len(busy) == 0 || len(spoiltBy(got.Verdict, false)) > 0 || try == spare {
		return false
	}
	t.Logf("%v: INVALID because of the machine: %q", c, busy)
	return true
}

// result describes a load for the table.
func (c serverCase) result(t *testing.T, p *place, got *loaded) serverResult {
	t.Helper()
	keep := "default"
	if c.short {
		keep = c.server.short
	}
	grade, rules := ofServer(got.Verdict)
	return serverResult{c.server.name, c.server.versionOf(t, p), c.scheme, keep, c.model,
		got.Load.Answered, got.Load.Reconnects, got.Load.Retried, grade, rules,
		clock.Wall().UTC().Format(time.DateOnly)}
}
