package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"prony.example/internal/report/runs"
	"prony.example/record"
)

const monday = "2026-11-23T21-23-22Z"

// site is a server with one real run, and its API description.
type site struct {
	*Server
	dir    string // of the runs
	at     *httptest.Server
	router routers.Router
	told   map[string]bool // operations that were answered well
}

// put writes a file, with the folders above it.
func put(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newSite(t *testing.T, o Options) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), told: map[string]bool{}}
	from := os.DirFS(filepath.Join("..", "report", "runs", "testdata", "run"))
	err := os.CopyFS(filepath.Join(s.dir, monday), from)
	if err != nil {
		t.Fatal(err)
	}
	put(t, "<!doctype html>\n<b>text</b>\n", s.dir, monday, "logs", "b1-05-go-nethttp.log")
	o.Busy = "another prony is measuring on this machine"
	if o.Runs == nil {
		o.Runs, err = runs.Open(s.dir, runs.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Server = New(o)
	s.at = httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.end.Do(func() { close(s.closed) })
		s.at.Close()
	})
	doc, err := openapi3.NewLoader().LoadFromData(Description)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err == nil {
		s.router, err = gorillamux.NewRouter(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request and compares the response with the description.
func (s *site) ask(t *testing.T, method, path, body string, header ...string) (*http.Response,
	string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.at.URL+"/api/v1"+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = joined(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	s.hold(t, method, path, answer, text)
	return answer, string(text)
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *site) hold(t *testing.T, method, path string, answer *http.Response, text []byte) {
	t.Helper()
	asked := httptest.NewRequest(method, "/api/v1"+path, http.NoBody)
	route, params, err := s.router.FindRoute(asked)
	if err != nil {
		t.Errorf("%s %s is not described: %v", method, path, err)
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked,
			PathParams: params, Route: route},
		Status: answer.StatusCode, Header: answer.Header,
		Body:    io.NopCloser(strings.NewReader(string(text))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s answers what is not described: %v\n%.300s", method, path, err, text)
	}
	if answer.StatusCode < 300 {
		s.told[route.Operation.OperationID] = true
	}
}

// desk is a fake lab.
type desk struct{}

const deskSuite = `name: canonical
question: Which?
blocks: 4 # passes
scenarios: [{name: hello, requests: [{request: GET /}]}]
loads: [{name: peak, model: closed}]
`

func (desk) Suites() ([]Suite, error) {
	return []Suite{{Name: "canonical", File: "suites/canonical.yaml", Question: "Which?",
		Blocks: 4, Targets: []string{"*"}, Scenarios: []string{"hello"}, Loads: []string{"peak"},
		Launchers: []string{"process"}, YAML: deskSuite, Path: "suites/canonical.yaml"},
		{Name: "prony.yaml", File: "prony.yaml", Targets: []string{}, Scenarios: []string{},
			Loads: []string{}, Launchers: []string{}, YAML: "targets: {}\n"}}, nil
}

// Plan returns one trial, and an error for names with "bad".
func (desk) Plan(_ context.Context, args []string) (Plan, error) {
	if strings.Contains(strings.Join(args, " "), "bad") {
		return Plan{}, errors.New("it is bad")
	}
	return Plan{Trials: []Planned{{Trial: "b1-01-go-nethttp", Target: "go-nethttp",
		Scenario: "hello", Block: 1}}, LeastS: 1, MostS: 2}, nil
}

// Start runs the word after the label "do" instead of the program.
func (desk) Start(args []string, said *os.File) (<-chan error, error) {
	out, do := "", ""
	for _, a := range args {
		if dir, ok := strings.CutPrefix(a, "--out="); ok {
			out = dir
		}
		if text, ok := strings.CutPrefix(a, "--label=do="); ok {
			do = text
		}
	}
	cmd := exec.Command("sh", "-c", map[string]string{
		"busy":  "echo another prony is measuring on this machine: process 7; exit 1",
		"break": "echo it broke; exit 1",
		"run": `mkdir "$1" && printf '{"kind":"begin","pid":%d,"processStart":"%s"}\n' $$ ` +
			`"$(cut -d' ' -f22 /proc/$$/stat)" >"$1/progress.ndjson" && exec sleep 1000`,
	}[do], "sh", out)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

func (desk) Catalog(context.Context) ([]Target, error) {
	return []Target{{Name: "go-nethttp", Service: "go-nethttp", Contracts: []string{"hello"},
		Missing: []string{}}, {Name: "cobol", Service: "cobol", Contracts: []string{"hello"},
		Missing: []string{"needs cobc: not found"}}}, nil
}

func (desk) Host(context.Context) (Host, error) {
	return Host{Doctor: record.Grading{Grade: record.Fit, Checks: []record.Check{}},
		Tools: []Tool{{Name: "go", Version: "1.26"}}, Time: time.Time{}}, nil
}

func init() { // of the checker: what is no JSON is a text to it
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
}
