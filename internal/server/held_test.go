package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// stage is what a held target is in these tests: the verb's lines are written by the test, and
// what it holds is a server of the test's.
type stage struct {
	*site
	out   *io.PipeWriter // what the verb start says
	ended chan error
	asked chan []string // lines that were started
	load  string        // what the verb load prints
	busy  chan struct{} // holds the load; nil: nothing does
}

// end is what is closed to have the verb end.
type end struct{ s *stage }

func (e end) Close() error {
	_ = e.s.out.Close() // it may have been
	return nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{ended: make(chan error, 1), asked: make(chan []string, 9)}
	s.site = newSite(t, Options{Lab: desk{verb: s.verb}})
	return s
}

func (s *stage) verb(args []string) *Verb {
	s.asked <- args
	if args[0] == "load" {
		if s.busy != nil {
			<-s.busy
		}
		return &Verb{In: io.NopCloser(nil), Out: strings.NewReader(s.load),
			Wait: func() error { return nil }}
	}
	in, out := io.Pipe()
	s.out = out
	return &Verb{In: end{s}, Out: in, Wait: func() error { return <-s.ended }}
}

// say has the verb tell lines.
func (s *stage) say(t *testing.T, told ...Told) {
	t.Helper()
	for _, one := range told {
		b, err := json.Marshal(one)
		if err == nil {
			_, err = s.out.Write(append(b, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// is waits until what is held is in a state.
func (s *stage) is(t *testing.T, state string) (h Held) {
	t.Helper()
	for over := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, text := s.ask(t, "GET", "/service", "")
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		if h.State == state {
			return h
		}
		if time.Now().After(over) {
			t.Fatalf("it is %s, want %s", text, state)
		}
	}
}

func (s *stage) want(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	answer, text := s.ask(t, method, path, body)
	if answer.StatusCode != status {
		t.Errorf("%s %s %.100s: %d %.300s, want %d", method, path, body, answer.StatusCode, text,
			status)
	}
	return text
}

// A target is held by one process at a time, which is told in whole and asked what it says.
func TestHeld(t *testing.T) {
	s := newStage(t)
	s.is(t, heldNone)
	s.want(t, 409, "DELETE", "/service", "")
	for body, status := range map[string]int{
		`{"target":"none"}`: 422, `{"target":"cobol"}`: 422, `{"target":"go-nethttp","cpu":1}`: 400,
		`{"target":"go-nethttp","cpus":-1}`:           422,
		`{"target":"go-nethttp","memory":"1 --wait"}`: 422, `{"target":"--help"}`: 422,
	} {
		s.want(t, status, "POST", "/service", body)
	}
	s.want(t, 202, "POST", "/service", `{"target":"go-nethttp","cpus":0.5,"memory":"1GiB"}`)
	if got := strings.Join(<-s.asked, " "); got !=
		"start --json --until-stdin-ends --cpus=0.5 --memory=1GiB -- go-nethttp" {
		t.Errorf("it starts %s", got)
	}
	s.want(t, 409, "POST", "/service", `{"target":"go-nethttp"}`)
	s.want(t, 409, "POST", "/service/requests", `{"path":"/"}`)
	s.say(t, Told{Kind: ToldSay, Text: "build: cached"}, Told{Kind: ToldReady,
		URL: "http://127.0.0.1:1", ReadyS: 0.5, InForce: []string{"memory"}, Cores: []int{0}},
		Told{Kind: ToldCase, Case: &Checked{Contract: "hello", Request: "GET /a", State: Passed}},
		Told{Kind: ToldCase, Case: &Checked{Contract: "hello", Request: "GET /a", State: Failed,
			Text: strings.Repeat("é", 4000)}})
	for i := range keptUsage + 5 {
		s.say(t, Told{Kind: ToldUsage, Usage: &Usage{TS: float64(i), Memory: 7}})
	}
	h := s.is(t, heldRunning)
	if len(h.Cases) != 2 || len(h.Cases[1].Text) > shortText+9 || fmt.Sprint(h.Paths) != "[/a]" ||
		h.ReadyS != 0.5 || fmt.Sprint(h.Said, h.InForce) != "[build: cached] [memory]" {
		t.Errorf("what is held is %.600v", h)
	}
	for h.Usage[len(h.Usage)-1].TS < keptUsage+4 { // the last lines are on their way
		h = s.is(t, heldRunning)
	}
	if len(h.Usage) != keptUsage || h.Usage[0].TS != 5 {
		t.Errorf("%d seconds from %v are kept", len(h.Usage), h.Usage[0].TS)
	}
	s.want(t, 502, "POST", "/service/requests", `{"path":"/"}`) // nobody is at that port
	s.ended <- fmt.Errorf("exit status 1")
	s.want(t, 202, "DELETE", "/service", "")
	h = s.is(t, heldEnded)
	if h.URL != "" || h.Said[len(h.Said)-1] != "exit status 1" {
		t.Errorf("it ended as %v", h)
	}
	s.want(t, 409, "POST", "/service/loads", `{"path":"/","connections":1,"seconds":1}`)
	s.want(t, 200, "GET", "/service/log", "")
}

// ready is a held target that is a server of the test's.
func (s *stage) ready(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.want(t, 202, "POST", "/service", `{"target":"go-nethttp"}`)
	<-s.asked
	s.say(t, Told{Kind: ToldReady, URL: server.URL, Cores: []int{0, 1}})
	s.is(t, heldRunning)
	t.Cleanup(func() {
		s.ended <- nil
		_ = s.out.Close() // it may have been
	})
}

// Requests by hand go to what is held and nowhere else; what comes back is text, and bounded.
func TestRequests(t *testing.T) {
	s := newStage(t)
	s.ready(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case "/large":
			w.Write([]byte(strings.Repeat("x", 1<<20))) //nolint:errcheck // the answer says so
		case "/broken":
			w.Header().Set("Content-Length", "9")
			w.Write([]byte("\xff")) //nolint:errcheck // likewise
		default:
			w.Header().Set("X-Said", r.Method+" "+r.Header.Get("X-Asked"))
			io.Copy(w, r.Body) //nolint:errcheck // likewise
		}
	}))
	check := func(status int, body string) (a Answer) {
		t.Helper()
		text := s.want(t, status, "POST", "/service/requests", body)
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := check(200, `{"method":"PUT","path":"/x?a=b","body":"<b>","headers":{"X-Asked":"1"}}`)
	if a.Status != 200 || a.Body != "<b>" || !strings.Contains(fmt.Sprint(a.Headers),
		"[X-Said PUT 1]") {
		t.Errorf("the answer is %v", a)
	}
	if a = check(200, `{"path":"/away"}`); a.Status != http.StatusFound {
		t.Errorf("a redirect is %d", a.Status)
	}
	a = check(200, `{"path":"/large"}`)
	if !a.Cut || a.Bytes != 1<<20 || len(a.Body) != mostAnswer {
		t.Errorf("of %d bytes %d are shown, cut: %v", a.Bytes, len(a.Body), a.Cut)
	}
	check(502, `{"path":"/broken"}`)
	for _, path := range []string{"", "x", "@evil.example/", "//evil.example:80/", ".evil.example/",
		":80@evil.example/", "http://evil.example/", "/a#b", "/{key}", "/a b", "/\\n", "/a\\u0000"} {
		if path == "//evil.example:80/" {
			check(200, `{"path":"`+path+`"}`) // a path of the target that begins so
			continue
		}
		check(400, `{"path":"`+path+`"}`)
	}
	check(400, `{"path":"/","method":"A B"}`)
	check(400, `{"path":"/","headers":{"a\nb":"c"}}`)
	check(400, `{"path":"/","headers":{"a":"b\r\nc: d"}}`)
	check(400, `{"path":"/","url":"http://evil.example/"}`)
}

// A short load is one at a time, bounded, and told as the verb has it.
func TestShortLoads(t *testing.T) {
	s := newStage(t)
	s.ready(t, http.NotFoundHandler())
	s.load = `{"load":{"throughputPerS":10.5,"done":21,"errors":{"status":2},` +
		`"responseTime":{"maxNs":9}},"verdict":{"grade":"SUSPECT","findings":[` +
		`{"rule":"drift","grade":"SUSPECT","observed":"5 %"},{"rule":"lag","grade":"VALID"}]},` +
		`"percentiles":[{"of":"responseTime","name":"p50","ns":3},` +
		`{"of":"serviceTime","name":"p99","ns":4},{"of":"responseTime","name":"p99","ns":null}]}`
	for _, body := range []string{`{"path":"/","connections":0,"seconds":1}`,
		`{"path":"/","connections":257,"seconds":1}`, `{"path":"/","connections":1,"seconds":11}`,
		`{"path":"/","connections":1,"seconds":0}`, `{"path":"x","connections":1,"seconds":1}`} {
		s.want(t, 400, "POST", "/service/loads", body)
	}
	const body = `{"path":"/a","connections":2,"seconds":3}`
	var l Loaded
	err := json.Unmarshal([]byte(s.want(t, 200, "POST", "/service/loads", body)), &l)
	if err != nil || l.PerS != 10.5 || l.Requests != 21 || l.Errors != 2 || *l.P50Ns != 3 ||
		l.P99Ns != nil || l.MaxNs != 9 || l.Verdict != "SUSPECT" ||
		fmt.Sprint(l.Findings) != "[drift: 5 %]" {
		t.Errorf("it came to %+v, %v", l, err)
	}
	line := strings.Join(<-s.asked, " ")
	if !strings.HasPrefix(line, "load http://127.0.0.1:") ||
		!strings.HasSuffix(line, "/a --connections=2 --duration=3s --cores=0,1 --output=json") {
		t.Errorf("it starts %s", line)
	}
	s.load, s.busy = "no JSON", make(chan struct{})
	first := make(chan int)
	go func() {
		answer, _ := s.ask(t, "POST", "/service/loads", body)
		first <- answer.StatusCode
	}()
	<-s.asked
	s.want(t, 409, "POST", "/service/loads", body)
	close(s.busy)
	if got := <-first; got != http.StatusBadGateway {
		t.Errorf("a load without a result: %d", got)
	}
}

// What is held ends with the server.
func TestHeldEndsWithTheServer(t *testing.T) {
	s := newStage(t)
	s.want(t, 202, "POST", "/service", `{"target":"go-nethttp"}`)
	s.ended <- nil
	s.end.Do(func() { close(s.closed) })
	s.is(t, heldEnded)
}
