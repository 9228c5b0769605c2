package adhoc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/load/template"
	"prony.example/record"
)

// TestWords compares the splitting with a real shell.
func TestWords(t *testing.T) {
	check := func(command string, want ...string) {
		t.Helper()
		got, err := Words(command)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, error %v; want %q", command, got, err, want)
		}
		if want[0] == "env" || want[0] == "sh" {
			return
		}
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output()
		if err != nil || string(out) != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s: a shell makes %q of it, error %v; want %q", command, out, err, want)
		}
	}
	check("./app", "./app")
	check("  ./app  -p\t{port} ", "./app", "-p", "{port}")
	check(`./app 'a b' "c d" e\ f ""`, "./app", "a b", "c d", "e f", "")
	check(`./app "a\"b\c" 'a\b' '$HOME|&'`, "./app", `a"b\c`, `a\b`, "$HOME|&")
	check("GOGC=400 A='b c' ./app x", "env", "GOGC=400", "A=b c", "./app", "x")
	for _, c := range []string{"./app -p $PORT", "cd x && ./app", "./app > log", "./a*",
		`./app "$X"`, "./app `id`"} {
		check(c, "sh", "-c", c)
	}
	for _, wrong := range []string{"", "  ", "./app 'x", `./app "x`, `./app \`} {
		if got, err := Words(wrong); err == nil {
			t.Errorf("%q makes %q", wrong, got)
		}
	}
}

// A service of a Compose file is named by its service, and by its file if that is not compose.yaml.
func TestParseCompose(t *testing.T) {
	check := func(text, file, service, name string) {
		t.Helper()
		got, err := ParseCompose(text)
		if (err != nil) != (service == "") || got.File != file || got.Service != service {
			t.Fatalf("%q: %+v, error %v", text, got, err)
		}
		if err != nil {
			return
		}
		source := Source{Way: Compose{Compose: got, Port: 80}, Dir: "/x"}
		services, err := Services([]Source{source}, nil, "")
		if err != nil || services[0].Name != name || services[0].Made.Port != 80 ||
			services[0].Made.Compose.File != file || !source.Stays() {
			t.Errorf("%q: %+v, error %v, want the name %s", text, services, err, name)
		}
	}
	check("web", "compose.yaml", "web", "web")
	check("compose.yaml:web", "compose.yaml", "web", "web")
	check("old/compose.yaml:web", "old/compose.yaml", "web", "old-compose-web")
	check("a.yml:web", "a.yml", "web", "a-web")
	for _, wrong := range []string{"", ":", "a:", ":web", "old/compose.yaml", "a:b c"} {
		check(wrong, "", "", "")
	}
}

func TestServices(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"app", "app.jar"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	from := []Source{
		{Way: Command("./app -p {port}"), Dir: dir}, {Way: Command("GOGC=400 ./app"), Dir: dir},
		{Way: Command("./app -p {port}"), Dir: dir},
		{Way: Command("sh -c './app -q'"), Dir: dir, Name: "x"},
		{Way: Command("env java -jar ./app.jar"), Dir: dir},
		{Way: Revision{"feature/a b", "./app"}, Dir: dir, Steps: [][]string{{"true"}}},
		{Way: Command("./app -p {port}"), Dir: dir, Again: true},
		{Way: Command("./app --db=redis://ann:s3cret@db"), Dir: dir},
	}
	services, err := Services(from, nil, "/")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"app-p", "GOGC-400-app", "app-p-2", "x", "env-java-jar-app.jar",
		"feature-a-b", "app-p-again", "app-db-db"}
	for i, s := range services {
		if s.Name != want[i] || s.Full(s.Targets[0]) != want[i] {
			t.Errorf("%s is called %s, want %s", from[i].Way, s.Name, want[i])
		}
	}
	if a, b := services[0].Made, services[6].Made; a.SHA256 != b.SHA256 || a.SizeBytes != 3 {
		t.Errorf("one program is %+v and %+v", a, b)
	}
	if services[6].ControlOf != "app-p" || services[2].ControlOf != "" {
		t.Errorf("controls of %q and %q", services[6].ControlOf, services[2].ControlOf)
	}
	if services[3].Made.SizeBytes != 3 {
		t.Errorf("the program of a shell is not found: %+v", services[3].Made)
	}
	if got := services[4].Targets[0].Runtime; got != "jvm" {
		t.Errorf("java is %q", got)
	}
	if services[5].Made != nil || services[5].Build.Artifact != "app" {
		t.Errorf("a revision is built to %q, made %v", services[5].Build.Artifact, services[5].Made)
	}
	for _, wrong := range []Source{{Way: Command("./none"), Dir: dir}, {Way: Command(""), Dir: dir},
		{Way: Command("./app"), Dir: dir, Name: "a b"},
		{Way: Command("./app"), Dir: dir, Name: "-a"}} {
		if _, err := Services([]Source{wrong}, nil, "/"); err == nil {
			t.Errorf("%+v is a service", wrong)
		}
	}
}

// answers returns the responses of each service, one body per request.
func answers(by ...[]string) (names []string, out [][][]Answer) {
	for i, bodies := range by {
		var of []Answer
		for _, body := range bodies {
			status := 200
			if rest, ok := strings.CutPrefix(body, "404 "); ok {
				status, body = 404, rest
			} else if rest, ok := strings.CutPrefix(body, "500 "); ok {
				status, body = 500, rest
			}
			of = append(of, Answer{Status: status, Body: []byte(body)})
		}
		names, out = append(names, string(rune('a'+i))), append(out, [][]Answer{of})
	}
	return names, out
}

// The artifact of a build and its runtime are also found through a shell.
func TestPrograms(t *testing.T) {
	for _, c := range []struct{ command, made, runtime string }{
		{"./app", "app", ""},
		{"bin/app --port {port}", "bin/app", ""},
		{"./app --port $PORT", "app", ""},
		{"GOGC=400 ./app --port $PORT", "app", ""},
		{"java -jar target/*.jar --server.port=$PORT", ".", "jvm"},
		{"cd sub && ./app $PORT", ".", ""},
		{"cd sub; exec java -jar app.jar", ".", "jvm"},
		{"./bin/* $PORT", ".", ""},
		{"FLASK_DEBUG=0 python3 -m flask run -p $PORT", ".", "cpython"},
		{"node a.js --port=$PORT | tee log;", ".", ""},
		{"/usr/bin/env ./app", ".", ""},
	} {
		args, err := Words(c.command)
		if err != nil {
			t.Fatal(err)
		}
		made, runtime := artifact(args), guess(".", args)
		if made != c.made || runtime != c.runtime {
			t.Errorf("%s (%q): makes %s, runs on %q, want %s and %q", c.command, args, made,
				runtime, c.made, c.runtime)
		}
	}
}

func TestHold(t *testing.T) {
	request, err := ParseRequest("/x")
	if err != nil || request.Request != "GET /x" {
		t.Fatal(request, err)
	}
	check := func(says, refused string, by ...[]string) Held {
		t.Helper()
		names, all := answers(by...)
		held, err := Hold([]suite.Request{request}, names, all, false, nothing)
		switch {
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("error %v, want %q", err, refused)
		case refused == "" && err != nil:
			t.Error(err)
		case refused == "" && held[0].Says != says:
			t.Errorf("held %q, want %q", held[0].Says, says)
		}
		if refused == "" {
			if _, err := Suite(held, Options{Connections: 1, Blocks: 1, CPUs: 1,
				MemoryBytes: 1 << 30}); err != nil {
				t.Error(err)
			}
		}
		return held[0]
	}
	same := check("", "", []string{"x {key}", "x {key}"}, []string{"x {key}", "x {key}"})
	if body := same.Request.Expect.Body; body == nil || *body != template.Escape("x {key}") {
		t.Errorf("the body is held as %v: what looks like a placeholder must be none", body)
	}
	check("", `a responds with body "x", but b responds with body "y"; responses differ, so the `+
		`services`, []string{"x"},
		[]string{"y"})
	check("", "a responds with status 200, but b responds with status "+
		"404", []string{"x"}, []string{"404 x"})
	check("", "a responds with status 200, but a responds with status 404", []string{"x", "404 x"})
	check("", "a responds with status 500", []string{"500 oh"})
	if h := check("", "", []string{"404 no", "404 no"}); h.Request.Expect.Status != 404 {
		t.Errorf("held by status %d", h.Request.Expect.Status)
	}
	fields := check("by 2 fields with constant values; these parts vary: time", "",
		[]string{`{"id":1,"a":[{"b":"x"}],"time":1}`, `{"id":1,"a":[{"b":"x"}],"time":2}`},
		[]string{`{"id":1,"a":[{"b":"x"}],"time":3}`, `{"time":4,"a":[{"b":"x"}],"id":1}`})
	if c := fields.Request.Checks; len(c) != 2 || c[0].JSON != "a.0.b" || string(*c[0].Is) != "x" {
		t.Errorf("checks are %+v", c)
	}
	check("", `a has the value "1" in field id, but b has the value "2"`, []string{`{"id":1,"t":1}`,
		`{"id":1,"t":2}`},
		[]string{`{"id":2,"t":1}`, `{"id":2,"t":2}`})
	check("", "of a has no field t, but the response of b has", []string{`{"id":1}`, `{"id":1}`},
		[]string{`{"id":1,"t":1}`, `{"id":1,"t":2}`})
	check("", "of b has no field t, but the response of a has", []string{`{"id":1,"t":1}`,
		`{"id":1,"t":2}`},
		[]string{`{"id":1}`, `{"id":1}`})
	check("by status and length (2 bytes), because the bytes of the body vary", "",
		[]string{"ab", "cd"}, []string{"ef", "gh"})
	check("by the status alone, because bodies vary or are longer than 4.0 MiB", "", []string{"ab",
		"cde"})
	names, all := answers([]string{"x"}, []string{"y"})
	if held, err := Hold([]suite.Request{request}, names, all, true, nothing); err != nil ||
		held[0].Request.Expect.Body != nil {
		t.Errorf("by status alone: %+v, %v", held, err)
	}
}

// Every question has the same values of placeholders, and no request under load need have them.
func TestHoldPlaceholders(t *testing.T) {
	names, all := answers([]string{`{"a":8}`, `{"a":8}`})
	for _, r := range []suite.Request{{Request: "GET /{random 1..9}"},
		{Request: "POST /x", Body: "{seq}"},
		{Request: "GET /x", Headers: map[string]suite.Text{"A": "{uuid}"}}} {
		held, err := Hold([]suite.Request{r}, names, all, false, nothing)
		if err != nil || held[0].Request.Expect.Body != nil || held[0].Says !=
			"by the status alone, because its placeholders have other values in each request" {
			t.Errorf("%+v: %+v, %v", r, held, err)
		}
	}
}

// Values of JSON are held as checks find them under load: as written.
func TestHoldUnusualValues(t *testing.T) {
	const unusual = `"null":null,"zero":0.0,"price":10.50,"exp":1e3,"text":"\u00e9","t":`
	names, all := answers([]string{"{" + unusual + "1}", "{" + unusual + "2}"})
	request, err := ParseRequest("/x")
	if err != nil {
		t.Fatal(err)
	}
	held, err := Hold([]suite.Request{request}, names, all, false, nothing)
	if err != nil || len(held[0].Request.Checks) != 5 {
		t.Fatalf("held %+v, error %v", held, err)
	}
	for _, c := range held[0].Request.Checks {
		if want := map[string]string{"null": "null", "zero": "0.0", "price": "10.50", "exp": "1e3",
			"text": "é"}[c.JSON]; string(*c.Is) != want {
			t.Errorf("field %s is held as %q, but a check finds %q", c.JSON, *c.Is, want)
		}
	}
}

// nothing is an environment without variables.
func nothing(string) (string, bool) { return "", false }

// Only the passed environment counts; a response that contains a value of it is checked by its
// length, whatever the process's own environment contains.
func TestHoldKeepsSecrets(t *testing.T) {
	t.Setenv("PRONY_TEST_SET", "word")
	request, err := ParseRequest("/x?a=${PRONY_TEST_SET}")
	if err != nil {
		t.Fatal(err)
	}
	check := func(body, says string) {
		t.Helper()
		names, all := answers([]string{body, body})
		held, err := Hold([]suite.Request{request}, names, all, false,
			func(name string) (string, bool) { return "given", name == "PRONY_TEST_SET" })
		if err != nil || held[0].Says != says ||
			(held[0].Request.Expect.Body == nil) != (says != "") {
			t.Errorf("%q is held as %+v, error %v; want %q", body, held, err, says)
		}
	}
	check("it is given", "by status and length (11 bytes), because the body contains the value "+
		"of ${PRONY_TEST_SET}")
	check("it is word", "")
	// Errors that quote responses have the variable's name instead.
	status := 200
	given := request
	given.Given, given.Expect.Status = true, 201
	for _, c := range []struct {
		request suite.Request
		status  int
	}{{request, status}, {request, 500}, {given, status}} {
		names, all := answers([]string{"it is given, a"}, []string{"it is given, b"})
		for k := range all {
			all[k][0][0].Status = c.status
		}
		_, err := Hold([]suite.Request{c.request}, names, all, false,
			func(name string) (string, bool) { return "given", name == "PRONY_TEST_SET" })
		if err == nil || strings.Contains(err.Error(), "given") ||
			!strings.Contains(err.Error(), "it is ${PRONY_TEST_SET}, ") {
			t.Errorf("error %v", err)
		}
	}
}

func TestParseRequest(t *testing.T) {
	if r, err := ParseRequest("POST /a b"); err != nil || r.Request != "POST /a b" {
		t.Error(r, err)
	}
	for _, wrong := range []string{"", "items", "GET items", "http://x/"} {
		if _, err := ParseRequest(wrong); err == nil {
			t.Errorf("%q is a request", wrong)
		}
	}
}

// repository makes a real repository with two commits of the file in/f; run runs git there.
func repository(t *testing.T) (repo string, run func(args ...string) string) {
	t.Helper()
	repo = t.TempDir()
	run = func(args ...string) string {
		t.Helper()
		out, err := service.Git(t.Context(), repo, append([]string{"-c", "user.name=a",
			"-c", "user.email=a@b"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := os.MkdirAll(filepath.Join(repo, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	inside(t, repo, "one")
	run("add", ".")
	run("commit", "-q", "-m", "one")
	inside(t, repo, "two")
	run("commit", "-q", "-am", "two")
	return repo, run
}

func inside(t *testing.T, repo, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(repo, "in", "f"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// An incomplete clone of a killed run does not count: its head exists before its files, and a
// folder without a repository is inside another's.
func TestHalfAClone(t *testing.T) {
	repo, run := repository(t)
	id := run("rev-parse", "HEAD")[:12]
	for name, make := range map[string]func(to string){
		"no files": func(to string) {
			run("clone", "--quiet", "--shared", "--no-checkout", repo, to+".new")
		},
		"no repository": func(to string) {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		to := filepath.Join(repo, "kept "+name)
		make(filepath.Join(to, id))
		s := Source{Dir: filepath.Join(repo, "in"), Way: Revision{Git: "main"}}
		_, err := s.Clone(t.Context(), to)
		text, err1 := os.ReadFile(filepath.Join(s.Dir, "f"))
		if err != nil || string(text) != "two" {
			t.Errorf("on top of one with %s it has %q, errors %v, %v", name, text, err, err1)
		}
	}
}

// TestClone uses a real repository.
func TestClone(t *testing.T) {
	repo, run := repository(t)
	kept := t.TempDir()
	inside(t, repo, "three")
	for revision, want := range map[string]string{"main": "two", "main~1": "one"} {
		for range 2 { // the second finds the first's
			s := Source{Dir: filepath.Join(repo, "in"), Way: Revision{Git: revision}}
			note, err := s.Clone(t.Context(), kept)
			if err != nil {
				t.Fatal(err)
			}
			if told := note != ""; told != (want == "two") {
				t.Errorf("of what is not committed %s says %q", revision, note)
			}
			text, err := os.ReadFile(filepath.Join(s.Dir, "f"))
			if err != nil || string(text) != want {
				t.Errorf("%s has %q, error %v; want %s", revision, text, err, want)
			}
		}
	}
	s := Source{Dir: repo, Way: Revision{Git: "nothing"}}
	if _, err := s.Clone(t.Context(), kept); err == nil ||
		!strings.Contains(err.Error(), "--git nothing") {
		t.Errorf("error %v", err)
	}
	s = Source{Dir: kept, Way: Revision{Git: "main"}}
	if _, err := s.Clone(t.Context(), kept); err == nil {
		t.Error("a folder without a repository has revisions")
	}
	if left := run("worktree", "list"); strings.Count(left, "\n") > 0 {
		t.Errorf("the repository was left with %q", left)
	}
}

// Programs that clone one revision at the same time wait for each other.
func TestClonesAtOnce(t *testing.T) {
	repo, _ := repository(t)
	kept := filepath.Join(t.TempDir(), "not", "yet")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := Source{Dir: filepath.Join(repo, "in"), Way: Revision{Git: "main"}}
			_, err := s.Clone(t.Context(), kept)
			if _, e := os.Stat(filepath.Join(s.Dir, "f")); err != nil || e != nil {
				t.Error(err, e)
			}
		})
	}
	all.Wait()
}

// With objectives the suite ends with a search for the capacity; without, there is none.
func TestSuiteSearches(t *testing.T) {
	loads := func(slo string) []suite.Load {
		held := []Held{{Request: suite.Request{Request: "GET /",
			Expect: suite.Expect{Status: 200}}}}
		s, err := Suite(held, Options{Connections: 8, Blocks: 1, CPUs: 1, MemoryBytes: 1 << 30,
			SLO: slo})
		if err != nil {
			t.Fatal(err)
		}
		return s.Loads
	}
	if all := loads(""); len(all) != 2 {
		t.Errorf("%d loads without objectives, want 2", len(all))
	}
	all := loads("p99<20ms")
	if last := all[len(all)-1]; len(all) != 3 || last.Model != record.Capacity ||
		last.SLO != "p99<20ms" || last.Connections != 8 || last.Budget <= 0 {
		t.Errorf("with objectives %+v", all)
	}
}

// The error of a target in a file names its key, not a flag.
func TestURLInFile(t *testing.T) {
	_, err := Services([]Source{{File: "prony.yaml", Name: "a", Way: URL("http://127.0.0.1:8/x")}},
		nil, "")
	const want = "prony.yaml: target a: url http://127.0.0.1:8/x: the URL must be only " +
		"http://HOST:PORT; set the path in the requests"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
