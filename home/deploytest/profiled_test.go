package deploytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
)

// profiler is the agent that must precede OpenTelemetry's, whose extension looks for it.
const profiler = "-javaagent:/agents/agent.jar "

// PYROSCOPE adds the profiler to every JVM with OpenTelemetry's agent, under the name of the
// service. Without it no JVM has the profiler.
func TestPyroscope(t *testing.T) {
	for _, switched := range []string{"", "on"} {
		found := 0
		for name, c := range parse(t, []string{"PYROSCOPE=" + switched}, "*").Services {
			value := func(key string) string {
				if v := c.Environment[key]; v != nil {
					return *v
				}
				return ""
			}
			options, clinics := value("JAVA_TOOL_OPTIONS"), strings.HasPrefix(name, "agent-") ||
				strings.HasPrefix(name, "baseline-")
			if clinics || !strings.Contains(options, "opentelemetry") {
				continue // the tester's clinics have another agent
			}
			found++
			extension := value("OTEL_JAVAAGENT_EXTENSIONS")
			if switched == "" && (strings.Contains(options, "agent.jar ") || extension != "") {
				t.Errorf("%s is profiled unasked: %s %s", name, options, extension)
			}
			if switched == "" {
				continue
			}
			own := value("PYROSCOPE_APPLICATION_NAME")
			if !strings.HasPrefix(options, profiler) || extension != "/agents/otel.jar" ||
				own == "" || own != value("OTEL_SERVICE_NAME") ||
				value("PYROSCOPE_SERVER_ADDRESS") != "http://alloy:4040" {
				t.Errorf("%s: %q, %q, as %q", name, options, extension, own)
			}
		}
		if found < 40 {
			t.Errorf("%d JVMs with PYROSCOPE=%s: are they found?", found, switched)
		}
	}
	alone := parse(t, []string{"PYROSCOPE=on", "OTEL="}, "*").Services["java-jdk-platform"]
	if got := alone.Environment["JAVA_TOOL_OPTIONS"]; got == nil || *got != profiler {
		t.Errorf("without OpenTelemetry it has %v", got)
	}
}

// pushed is what Pyroscope's agent has sent to a server.
type pushed struct {
	mu       sync.Mutex
	profiles int
	last     []byte // the latest, as JFR
	wrong    []string
}

// ServeHTTP accepts a profile like Pyroscope: POST /ingest with a part that is a recording.
func (p *pushed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	if r.URL.Path != "/ingest" || q.Get("format") != "jfr" ||
		!strings.HasPrefix(q.Get("name"), "java-jdk/platform") {
		p.wrong = append(p.wrong, r.URL.String())
		return
	}
	parts, err := r.MultipartReader()
	for err == nil {
		part, end := parts.NextPart()
		if end != nil {
			return
		}
		body, err := io.ReadAll(part)
		if z, bad := gzip.NewReader(bytes.NewReader(body)); bad == nil && err == nil {
			body, err = io.ReadAll(z)
		}
		switch {
		case err != nil:
			p.wrong = append(p.wrong, err.Error())
		case part.FormName() == "jfr" && bytes.HasPrefix(body, []byte("FLR\x00")):
			p.profiles, p.last = p.profiles+1, body
		}
	}
	p.wrong = append(p.wrong, err.Error())
}

func (p *pushed) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.profiles
}

// fetchAgents downloads the jars as deploy/agents/Dockerfile does, and checks their digests.
func fetchAgents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("mvn", "-q", "-B", "-f", filepath.Join(root, "deploy/agents/pom.xml"),
		"dependency:copy-dependencies", "-DoutputDirectory="+dir, "-Dmdep.stripVersion=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(file(t, "agents/SHA256SUMS")) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		jar, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(jar); hex.EncodeToString(sum[:]) != want {
			t.Fatalf("%s has not the digest of SHA256SUMS", name)
		}
	}
	// As root, services run as other users.
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// profiled starts java-jdk with the environment of its container, except for the places of the jars
// and the servers.
func profiled(t *testing.T, c container, server, log string) *processes.System {
	t.Helper()
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	tools := service.FindTools(t.Context())
	s, err := service.Load(filepath.Join(abs, "services/java-jdk"))
	if err != nil {
		t.Fatal(err)
	}
	target := s.Targets[0]
	if missing := tools.Missing(s, target); len(missing) > 0 {
		t.Skip(missing)
	}
	built, err := (&service.Builder{Root: abs, Tools: tools}).Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	here := strings.NewReplacer("/agents/", fetchAgents(t)+"/", "http://alloy:4040", server)
	for key, value := range c.Environment {
		if value != nil && key != "HOST" && key != "PORT" {
			env[key] = here.Replace(*value)
		}
	}
	for _, kind := range []string{"TRACES", "METRICS", "LOGS"} {
		env["OTEL_"+kind+"_EXPORTER"] = "none"
	}
	env["OTEL_TRACES_SAMPLER"], env["PYROSCOPE_UPLOAD_INTERVAL"] = "always_on", "1s"
	starter := processes.Starter{Launcher: &process.Launcher{}, Port: processes.FreePort}
	p, err := starter.Start(
		t.Context(),
		processes.Order{Name: "profiled", Service: s, Target: target,
			Built: built, LogFile: log,
			Values: service.Values{CPUs: 1, MemoryBytes: 1 << 30, Env: env}},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(p.Grace()); err != nil {
			t.Error(err)
		}
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("it wrote:\n%s", text)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, _, err := service.WaitReady(ctx, nil, p.Addr().String(), s.Run.Ready, p.Began(),
		p.Exited()); err != nil {
		t.Fatal(err)
	}
	return p
}

// With the agents of the Compose files in a real JVM, profiles arrive and have the spans of
// requests.
func TestProfilesAreLinkedToSpans(t *testing.T) {
	testsets.Long(t, "a JVM that Pyroscope's agent profiles", testsets.Needs{
		Files: []string{"agents.yaml", "deploy", "services/java-jdk"}})
	c, ok := parse(t, []string{"PYROSCOPE=on"}, "*").Services["java-jdk-platform"]
	if !ok {
		t.Fatal("there is no java-jdk-platform")
	}
	got := &pushed{}
	server := httptest.NewServer(got)
	defer server.Close()
	p := profiled(t, c, server.URL, filepath.Join(t.TempDir(), "service.log"))
	at := url.URL{Scheme: "http", Host: p.Addr().String(), Path: "/fibonacci"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The first profiles began earlier, and may cover only the start.
	for last := got.count() + 5; got.count() < last && ctx.Err() == nil; {
		answer, err := http.Get(at.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body) // only the work matters
		answer.Body.Close()
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if ctx.Err() != nil || len(got.wrong) > 0 {
		t.Fatalf("%d profiles; wrong: %q", got.profiles, got.wrong)
	}
	linked := spans(t, filepath.Join(filepath.Dir(p.Parts[0].Args[0]), "jfr"), got.last)
	t.Logf("%d profiles; in the last one %d samples of requests with their span", got.profiles,
		linked)
	if linked == 0 {
		t.Error("no sample of a request has its span")
	}
}

// spans counts the samples of requests in a recording that have a span.
func spans(t *testing.T, jfr string, recording []byte) (linked int) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "last.jfr")
	if err := os.WriteFile(name, recording, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(jfr, "print", "--events", "jdk.ExecutionSample", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	for sample := range strings.SplitSeq(string(out), "jdk.ExecutionSample {") {
		if strings.Contains(sample, "prony.Compute.fibonacci") && spanOf.MatchString(sample) {
			linked++
		}
	}
	return linked
}

// spanOf matches a span's id, which is never 0.
var spanOf = regexp.MustCompile(`spanId = -?[1-9]`)
