package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"prony.example/load"
	"prony.example/load/engine/epoll"
	"prony.example/record"
)

// checkHeads checks the heads of the honest server's answers.
func checkHeads(t *testing.T, contractName string, got []Head) {
	t.Helper()
	// "HTTP/1.1 200 OK" 17, "Content-Type: text/plain" 26, "Content-Length: 11" 20, "Date: " and
	// 29 characters 37, the empty line 2, each with its CRLF: 102.
	names := []string{"Content-Length", "Content-Type", "Date"}
	want := map[string][]Head{
		// "; charset=utf-8" are 15 more; "Hello from REST value-1" is 23.
		"hello": {{"GET /hello/{mode}?key=1", 102 + 15, 23, names, true}},
		// "application/octet-stream" is 14 longer than "text/plain", 1024 has 2 digits more.
		"http": {{"GET /hello", 102, 11, names, true},
			{"GET /file?size=1024", 102 + 14 + 2, 1024, names, true}},
		// "application/json" is 6 longer, and the length of the body has three digits.
		"compute": {{"GET /data", 102 + 6 + 1, 190, names, true}},
	}[contractName]
	for i := range want {
		if contractName == "compute" {
			want[i].BodyBytes = int64(len(*goldens()["compute"].Cases[0].Body))
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: heads\n%+v, want\n%+v", contractName, got, want)
	}
}

func TestHeadsOfClosedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, _, err := checkWith(t, "http",
			func(_ *honest, w http.ResponseWriter, r *http.Request) bool {
				lies := r.URL.Path == "/hello" && r.Method == http.MethodGet
				if lies {
					exactly(head(ok, typed, eleven)+"Hello world")(w, r)
				}
				return lies
			})
		if err != nil || len(report.Heads) != 2 || report.Heads[0].Kept || !report.Heads[1].Kept {
			t.Errorf("%v, %+v", err, report.Heads)
		}
	})
}

func TestHeadlinesAreGoldenCases(t *testing.T) {
	count := 0
	for name, requests := range headlines {
		for _, request := range requests {
			count++
			g, there := goldens()[name]
			is := func(c goldenCase) bool { return c.Request == request && c.quick() }
			if there && !slices.ContainsFunc(g.Cases, is) {
				t.Errorf("%s: no quick case asks %s", name, request)
			}
		}
	}
	if all := Headlines(); len(all) != count {
		t.Errorf("%d of %d headlines are listed: %q", len(all), count, all)
	}
}

// Services must not be able to distinguish the check from the load: both send the same bytes.
func TestRequestsAreThoseOfTheLoadGenerator(t *testing.T) {
	check := func(c goldenCase, r load.Request) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		addr := netip.MustParseAddrPort(listener.Addr().String())
		want := requestText(c, addr.String(), nil)
		got := make(chan string, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				got <- err.Error()
				return
			}
			defer conn.Close()
			text := make([]byte, len(want))
			n, _ := io.ReadFull(conn, text)
			got <- string(text[:n])
		}()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = load.Run(ctx, load.Spec{Name: "one", Model: record.Closed, Address: addr,
				Connections: 1, Requests: 1, Window: time.Minute, Timeout: time.Minute,
				Scenario: load.Scenario{Requests: []load.Request{r}},
				Engine: func(a netip.AddrPort, slots int) (load.Engine, error) {
					return epoll.New(a, slots)
				}})
		}()
		if text := <-got; text != string(want) {
			t.Errorf("the load sends\n%q\nthe check\n%q", text, want)
		}
		cancel()
		<-ended
	}
	check(goldenCase{Request: "GET /hello?key=1"},
		load.Request{Method: "GET", Path: "/hello?key=1"})
	check(goldenCase{Request: "POST /load", Send: "ab"},
		load.Request{Method: "POST", Path: "/load", Body: "ab"})
	check(goldenCase{Request: "PUT /x", Send: "{}", SendType: "application/json"},
		load.Request{Method: "PUT", Path: "/x", Body: "{}", Type: "application/json"})
	check(goldenCase{Request: "POST /load"}, load.Request{Method: "POST", Path: "/load"})
}

// liesTo answers with a wrong value if knows identifies the client.
func liesTo(knows func(*http.Request) bool) func(*honest, http.ResponseWriter,
	*http.Request) bool {
	return func(_ *honest, w http.ResponseWriter, r *http.Request) bool {
		lies := r.Method+r.URL.RequestURI() == "GET/hello/virtual?key=1" && knows(r)
		if lies {
			answer(w, 200, plain, "Hello from REST value-2")
		}
		return lies
	}
}

func TestNoAnswerDependsOnHeaders(t *testing.T) {
	const how = ", over another connection: "
	// 16 bytes of "Hello from REST ", 6 of "value-", then the wrong byte.
	const wrong = `the body differs at byte 23: got "value-2", want "value-1"`
	check := func(name string, knows func(*http.Request) bool, want ...string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report, _, err := checkWith(t, "hello", liesTo(knows))
				var got []string
				for _, f := range report.Failures() {
					got = append(got, strings.TrimPrefix(f, "GET /hello/virtual?key=1: "))
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, %q, want %q", err, got, want)
				}
			})
		})
	}
	curl, browser := "with the headers of curl"+how+wrong, "with the headers of a browser"+how+wrong
	proxy := "with the headers of a proxy that adds headers" + how + wrong
	bare := func(r *http.Request) bool { return len(r.Header) == 0 }
	check("the load", bare, wrong)
	// The case before, the default key, was sent as curl, so the browser is next.
	check("who has a name", func(r *http.Request) bool { return r.UserAgent() != "" }, browser,
		proxy, curl)
	for name, want := range map[string]string{"Accept-Language": browser, "X-Key": proxy,
		"If-None-Match": proxy, "Cookie": proxy} {
		check(name, func(r *http.Request) bool { return r.Header.Get(name) != "" }, want)
	}
	check("curl", func(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "curl") },
		curl)
}

// Inside trials one other client repeats the requests that suites measure, another one each time.
func TestQuickAsksAsOneOther(t *testing.T) {
	named := func(r *http.Request) bool { return r.UserAgent() != "" }
	for seed := range uint64(len(dresses)) {
		synctest.Test(t, func(t *testing.T) {
			h, lie := &honest{}, liesTo(named)
			asked := 0
			p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if named(r) {
					asked++
				}
				if !lie(h, w, r) {
					h.ServeHTTP(w, r)
				}
			}))
			seed += 3 // a zero seed would be random
			report, err := Quick(t.Context(), Checker{Dial: p.dial, Base: "service:1",
				Mode: "virtual", Seed: seed}, "hello")
			want := "with the headers of " + dresses[seed%3].name
			if got := report.Failures(); err != nil || len(got) != 1 || asked != 1 ||
				!strings.Contains(got[0], want) {
				t.Errorf("seed %d: %v, %d questions, %q, want %s", seed, err, asked, got, want)
			}
		})
	}
}

func TestKeysAreDrawn(t *testing.T) {
	drawn := func(seed uint64, quick bool, contractName string) (out []string) {
		k := newCheck(Checker{Seed: seed}, contractName, quick)
		for _, c := range k.drawnCases(contractName) {
			if !c.quick() {
				t.Errorf("%s is not quick", c.Request)
			}
			out = append(out, fmt.Sprint(c.Request, c.SendLorem))
		}
		return out
	}
	a, b, c := drawn(1, false, "hello"), drawn(1, false, "hello"), drawn(2, false, "hello")
	if len(a) != 8 || !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("seed 1 draws %q, then %q, seed 2 %q", a, b, c)
	}
	if one, four := drawn(1, true, "hello"), drawn(1, false, "http"); len(one) != 1 ||
		len(four) != 4 {
		t.Errorf("quick draws %q, http %q", one, four)
	}
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(&honest{}).ServeHTTP(w, r)
		}))
		k := newCheck(Checker{Seed: 5}, "hello", true)
		c := k.drawnCases("hello")[0]
		broken := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(c.Request, r.URL.RawQuery) {
				answer(w, 404, "", "")
				return
			}
			(&honest{}).ServeHTTP(w, r)
		}))
		for server, want := range map[*pipes][]string{p: nil, broken: {
			c.filled("virtual").Request + `: status 404, want 200; the body begins with "" ` +
				`(drawn with seed 5)`}} {
			report, err := Quick(t.Context(), Checker{Dial: server.dial, Base: "service:1",
				Mode: "virtual", Seed: 5}, "hello")
			got := report.Failures()
			told := len(want) == 0 && len(got) == 0 ||
				len(want) == 1 && slices.Contains(got, want[0])
			if err != nil || !told {
				t.Errorf("%v, %q, want %q", err, got, want)
			}
		}
	})
}

// TestGoldenKeys covers golden answers that change data, and bodies of another type.
func TestGoldenKeys(t *testing.T) {
	const good = `contract: pets
cases:
  - name: add
    request: POST /pets
    send: '{"name":"Leo"}'
    sendType: application/json
    status: 201
    changes: true
    body: '{"id":11}'
`
	check := func(name, from, to, want string) {
		t.Helper()
		text := strings.Replace(good, from, to, 1)
		all, err := readGoldens(fstest.MapFS{"pets.yaml": {Data: []byte(text)}})
		switch {
		case want == "" && err == nil:
			c := all["pets"].Cases[0]
			if c.SendType != "application/json" || !c.Changes || c.quick() {
				t.Errorf("%s: %+v", name, c)
			}
		case want == "" || err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	check("good", "", "", "")
	check("nothing to send", "    send: '{\"name\":\"Leo\"}'\n", "",
		"pets.yaml:5: sendType is set, but there is nothing to send")
	check("no media type", "application/json", "json", `pets.yaml:6: sendType "json" `+
		`is not a media`)
	check("half a media type", "application/json", "application/",
		`pets.yaml:6: sendType "application/" is not a media`)
	check("changes and differs", "changes: true", "changes: true\n    differs: true",
		"pets.yaml:8: changes and differs exclude each other")
	check("unknown", "changes", "change", `unknown key "change"`)
}
