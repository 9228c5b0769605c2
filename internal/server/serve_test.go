package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"prony.example/internal/report"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// TestDescription checks that the description has each route and no other, and that responses match
// it.
func TestDescription(t *testing.T) {
	s := newSite(t, Options{Lab: desk{}})
	doc, err := openapi3.NewLoader().LoadFromData(Description)
	if err != nil {
		t.Fatal(err)
	}
	var described, routed, operations []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described = append(described, method+" /api/v1"+path)
			operations = append(operations, op.OperationID)
		}
	}
	for pattern := range s.routes() {
		routed = append(routed, pattern)
	}
	slices.Sort(described)
	slices.Sort(routed)
	if !slices.Equal(described, routed) {
		t.Errorf("described are\n%q, and there are\n%q", described, routed)
	}
	for _, path := range []string{"/openapi.yaml", "/runs", "/runs/" + monday,
		"/runs/" + monday + "/report", "/runs/" + monday + "/page", "/runs/" + monday + "/log",
		"/runs/" + monday + "/logs/b1-05-go-nethttp", "/runs/" + monday + "/trials",
		"/compare?a=" + monday + "&limit=5%25", "/compare/page?a=" + monday + "&limit=5%25",
		"/trend", "/choices", "/suites", "/suites/canonical", "/catalog", "/host"} {
		if answer, text := s.ask(t, http.MethodGet, path, ""); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %.300s", path, answer.StatusCode, text)
		}
	}
	s.change(t)
	for _, op := range operations {
		if !s.told[op] {
			t.Errorf("no test has seen %s answer", op)
		}
	}
}

// TestRuns checks that the pages of the index have each run once, and that filters work.
func TestRuns(t *testing.T) {
	s := newSite(t, Options{})
	for _, id := range []string{"2026-11-24T01-00-00Z", "2026-11-25T01-00-00Z", "named"} {
		from := os.DirFS(filepath.Join(s.dir, monday))
		if err := os.CopyFS(filepath.Join(s.dir, id), from); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(query string) (ids []string, next string, total int) {
		t.Helper()
		answer, text := s.ask(t, http.MethodGet, "/runs?"+query, "")
		var x struct {
			Runs  []runs.Entry
			Next  string
			Total int
		}
		if err := json.Unmarshal([]byte(text), &x); err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %d %v %s", query, answer.StatusCode, err, text)
		}
		for _, e := range x.Runs {
			ids = append(ids, e.ID)
		}
		return ids, x.Next, x.Total
	}
	all, next, total := ids("")
	if len(all) != 4 || next != "" || total != 4 {
		t.Fatalf("all are %q, then %q, of %d", all, next, total)
	}
	var paged []string
	cursor := ""
	for range 4 {
		page, next, _ := ids("limit=1&cursor=" + cursor)
		paged = append(paged, page...)
		cursor = next
	}
	if !slices.Equal(paged, all) || cursor != "" {
		t.Errorf("in pages they are %q, then %q", paged, cursor)
	}
	for query, want := range map[string]int{"suite=small": 4, "suite=other": 0,
		"verdict=invalid": 4,
		"verdict=failed":  0, "target=go-nethttp": 4, "label=branch%3Dmain": 4, "label=x": 0,
		"from=2026-11-24": 0, "to=2026-11-23": 4} {
		if _, _, total := ids(query); total != want {
			t.Errorf("%s: %d runs, want %d", query, total, want)
		}
	}
	for _, query := range []string{"suit=x", "limit=0", "limit=1001", "limit=x", "from=monday",
		"verdict=bad", "cursor=!", "cursor=xx", "suite=a&suite=b"} {
		if answer, text := s.ask(t, http.MethodGet, "/runs?"+query, ""); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, answer.StatusCode, text)
		}
	}
}

// TestReport checks that responses equal the output of the commands, and that unchanged ones are
// not sent again.
func TestReport(t *testing.T) {
	s := newSite(t, Options{})
	r, err := runs.Read(filepath.Join(s.dir, monday))
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	study := r.Study(r.Options())
	err = report.JSON(&want, study, report.JSONOptions{Answers: r.AnswerTexts(&study),
		Endpoints: r.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/runs/" + monday + "/report"
	answer, text := s.ask(t, http.MethodGet, path, "")
	if text != want.String() {
		t.Errorf("the report is\n%.300s, want\n%.300s", text, &want)
	}
	tag := answer.Header.Get("Etag")
	if again, _ := s.ask(t, http.MethodGet, path, "", "If-None-Match", tag); again.StatusCode !=
		http.StatusNotModified {
		t.Errorf("nothing has changed, and the answer is %d", again.StatusCode)
	}
	// A trial ends: removing the last record has the same effect.
	name := filepath.Join(s.dir, monday, "trials.ndjson")
	records, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(records, []byte("\n"))
	put(t, string(bytes.Join(lines[:3], nil)), name)
	again, text := s.ask(t, http.MethodGet, path, "", "If-None-Match", tag)
	if again.StatusCode != 200 || text == want.String() || again.Header.Get("Etag") == tag {
		t.Errorf("after a change: %d, the same: %v", again.StatusCode, text == want.String())
	}
	page, text := s.ask(t, http.MethodGet, "/runs/"+monday+"/page", "")
	policy := page.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "sandbox allow-scripts") ||
		strings.Contains(policy, "allow-same-origin") ||
		!strings.HasPrefix(text, "<!doctype html>") {
		t.Errorf("the page has policy %q: %.80s", policy, text)
	}
}

func TestLogs(t *testing.T) {
	s := newSite(t, Options{})
	put(t, `{"seq":1,"kind":"begin","pid":1}`+"\n"+`{"seq":2,"kind":"log","text":"builds"}`+"\n"+
		`{"seq":3,"kind":"tick","p50Ns":1}`+"\n"+`{"seq":4,"kind":"end","text":"is done"}`+"\n"+
		`{"seq":5,"ki`, s.dir, monday, record.ProgressFile)
	if _, text := s.ask(t, http.MethodGet, "/runs/"+monday+"/log", ""); text !=
		"builds\nis done\n" {
		t.Errorf("the lab said %q", text)
	}
	const log = "/runs/" + monday + "/logs/b1-05-go-nethttp"
	answer, text := s.ask(t, http.MethodGet, log, "")
	if text != "<!doctype html>\n<b>text</b>\n" ||
		answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the log is %q as %q", text, answer.Header)
	}
	answer, text = s.ask(t, http.MethodGet, log, "", "Range", "bytes=-5")
	if text != "</b>\n" || answer.StatusCode != http.StatusPartialContent {
		t.Errorf("its end is %q", text)
	}
	records, err := os.ReadFile(filepath.Join(s.dir, monday, record.TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	answer, text = s.ask(t, http.MethodGet, "/runs/"+monday+"/trials", "")
	if text != string(records) || answer.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the records are %d bytes as %q", len(text), answer.Header)
	}
	if answer, _ := s.ask(t, http.MethodGet, "/runs/none/trials", ""); answer.StatusCode != 404 {
		t.Errorf("the records of no run: %d", answer.StatusCode)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, "secret", secret)
	if err := os.Symlink(secret, filepath.Join(s.dir, monday, "logs", "linked.log")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"linked", "none", "..%2f..%2frun", "%2e%2e%2frun.json", "b1%00"} {
		answer, text := s.ask(t, http.MethodGet, "/runs/"+monday+"/logs/"+name, "")
		if answer.StatusCode != 404 {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
	}
}

func TestCompare(t *testing.T) {
	s := newSite(t, Options{})
	for query, want := range map[string]int{
		"a=" + monday + ":go-nethttp&b=" + monday + ":node-express":            200,
		"a=" + monday + ":go-nethttp&b=" + monday + ":node-express&limit=5%25": 200,
		"a=" + monday + ":go-nethttp":                                          400,
		"a=" + monday + ":none&b=" + monday + ":node-express":                  422,
		"a=none":                     404,
		"b=" + monday:                400,
		"a=../" + monday:             404,
		"a=" + monday + "&metrics=x": 400,
		"a=" + monday + "&limit=x":   400,
	} {
		for _, path := range []string{"/compare?", "/compare/page?"} {
			answer, text := s.ask(t, http.MethodGet, path+query, "")
			if answer.StatusCode != want {
				t.Errorf("%s: %d %.300s, want %d", query, answer.StatusCode, text, want)
			}
			judged := strings.Contains(text, `"checks"`) ||
				strings.Contains(text, `class="gate"`)
			if want == 200 && judged != strings.Contains(query, "limit") {
				t.Errorf("%s%s: judged %v: %.300s", path, query, judged, text)
			}
		}
	}
}

// TestCompareAnyway checks that runs with different methods are refused with a status of their own,
// and that the comparison that a reader insists on names the mismatch.
func TestCompareAnyway(t *testing.T) {
	s := newSite(t, Options{})
	const other = "2026-11-24T03-40-11Z"
	err := os.CopyFS(filepath.Join(s.dir, other), os.DirFS(filepath.Join(s.dir, monday)))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, other, "trials.ndjson")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(text, []byte(`"connections":`), []byte(`"connections":1`))
	if err := os.WriteFile(file, changed, 0o600); err != nil || bytes.Equal(text, changed) {
		t.Fatal("the connections are not changed: ", err)
	}
	query := "a=" + monday + "&b=" + other
	for _, path := range []string{"/compare?", "/compare/page?"} {
		answer, text := s.ask(t, http.MethodGet, path+query, "")
		if answer.StatusCode != http.StatusConflict || !strings.Contains(text, "Compare anyway") {
			t.Errorf("%s: %d %.300s", path, answer.StatusCode, text)
		}
		answer, text = s.ask(t, http.MethodGet, path+query+"&allowMismatch=true", "")
		if answer.StatusCode != 200 || !strings.Contains(text, "connections") ||
			strings.Contains(text, `"mismatches":[]`) {
			t.Errorf("%s, anyway: %d %.300s", path, answer.StatusCode, text)
		}
	}
}

// TestComparePage checks that a comparison's page is that of prony compare, and that its scripts
// cannot reach this server.
func TestComparePage(t *testing.T) {
	s := newSite(t, Options{})
	a, err := s.side(monday + ":go-nethttp")
	if err != nil {
		t.Fatal(err)
	}
	b := a
	b.Target = "node-express"
	c, err := compare.Compare(a, b, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := report.Compare(&want, c, report.HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	answer, text := s.ask(t, http.MethodGet, "/compare/page?a="+monday+":go-nethttp&b="+monday+
		":node-express", "")
	if text != want.String() {
		t.Errorf("it is not the page of prony compare: %.300s", text)
	}
	if got := answer.Header.Get("Content-Security-Policy"); got != reportPolicy {
		t.Errorf("its policy is %q", got)
	}
}

// TestCopies checks that each run has the name of its folder, also if it is a copy, and that a
// trend has a copied run once.
func TestCopies(t *testing.T) {
	s := newSite(t, Options{})
	err := os.CopyFS(filepath.Join(s.dir, "copy"), os.DirFS(filepath.Join(s.dir, monday)))
	if err != nil {
		t.Fatal(err)
	}
	named := func(path, want string) {
		t.Helper()
		if _, text := s.ask(t, http.MethodGet, path, ""); !strings.Contains(text, want) {
			t.Errorf("%s lacks %s: %.500s", path, want, text)
		}
	}
	named("/compare?a="+monday+"&b=copy", "copies of one run")
	named("/trend", `"runs": 1`)
	if err := os.RemoveAll(filepath.Join(s.dir, monday)); err != nil {
		t.Fatal(err)
	}
	named("/trend", `"run": "copy"`)
}

// TestDamagedRun checks that a run that exists, but cannot be read, has a status of its own.
func TestDamagedRun(t *testing.T) {
	s := newSite(t, Options{})
	put(t, "{", s.dir, monday, record.RunFile)
	for _, path := range []string{"", "/report", "/page"} {
		answer, text := s.ask(t, http.MethodGet, "/runs/"+monday+path, "")
		if answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d %.300s", path, answer.StatusCode, text)
		}
	}
}

// TestNoLab checks that without a checkout only runs are available.
func TestNoLab(t *testing.T) {
	s := newSite(t, Options{})
	for _, path := range []string{"/suites", "/suites/x", "/catalog", "/host"} {
		if answer, text := s.ask(t, http.MethodGet, path, ""); answer.StatusCode != 404 ||
			!strings.Contains(text, "checkout") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
}

// TestDeadLink checks that a browser gets a page for each address that does not exist.
func TestDeadLink(t *testing.T) {
	s := newSite(t, Options{})
	for _, path := range []string{"/nothere", "/runs/nothere", "/a/b/c"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at.URL+path,
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 404 ||
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d, %s", path, answer.StatusCode, answer.Header.Get("Content-Type"))
		}
	}
}
