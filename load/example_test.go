package load_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
)

// greet is a server for example loads.
func greet() (at netip.AddrPort, end func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello ", r.URL.Query().Get("key"))
	}))
	return netip.MustParseAddrPort(server.Listener.Addr().String()), server.Close
}

// A closed load: each of two connections sends its next request after the last response. Every
// response is compared with the expected text, including the drawn key.
func ExampleRun() {
	at, end := greet()
	defer end()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "hello", Address: at, Model: record.Closed, Connections: 2, Seed: 1,
		Requests: 100, Window: time.Minute, Timeout: 10 * time.Second,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 9, Requests: []load.Request{
			{Method: "GET", Path: "/?key={key}", Want: "hello {key}", HasWant: true},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d answers, %d errors\n", r.Answered, r.Errors.Total())
	// Output: 100 answers, 0 errors
}

// An open load: 100 requests are due in its half second, one every 5 ms, independently of
// responses, and response times count from when requests were due.
func ExampleRun_open() {
	at, end := greet()
	defer end()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "hello", Address: at, Model: record.Open, Connections: 2, Seed: 1,
		Window: 500 * time.Millisecond, Drain: 10 * time.Second, Timeout: 10 * time.Second,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(200)},
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/?key=7", Want: "hello 7", HasWant: true},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d due, %d answered\n", r.Scheduled, r.Answered)
	fmt.Println("from due to done at least as long as from sent to done:",
		r.ResponseTime.P50Ns >= r.ServiceTime.P50Ns)
	// Output:
	// 100 due, 100 answered
	// from due to done at least as long as from sent to done: true
}

// An observer follows a load and ends it early: at the first report of 100 good responses.
func ExampleObserver() {
	at, end := greet()
	defer end()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "hello", Address: at, Model: record.Closed, Connections: 2,
		Window: time.Hour, Timeout: 10 * time.Second,
		Every: 10 * time.Millisecond,
		Observer: load.ProgressFunc(func(p load.Progress) bool {
			return p.Done < 100
		}),
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/?key=7", Want: "hello 7", HasWant: true},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at least 100 answers:", r.Answered >= 100)
	fmt.Println("in less than an hour:", time.Duration(r.WindowNs) < time.Hour)
	// Output:
	// at least 100 answers: true
	// in less than an hour: true
}

// A load over TLS: the choice sets the engine, and the record names the protocol.
func ExampleChoice_Set() {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	s := load.Spec{
		Name: "secure", Address: netip.MustParseAddrPort(server.Listener.Addr().String()),
		Model: record.Closed, Connections: 1, Requests: 10, Window: time.Minute,
		Timeout: 10 * time.Second,
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: "GET", Path: "/", Status: 404, WantSize: -1},
		}},
	}
	by := load.Choice{Speak: &nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp",
		Address: server.Listener.Addr().String(), Host: "example.com", Insecure: true}}
	if err := by.Set(&s); err != nil {
		log.Fatal(err)
	}
	r, err := load.Run(context.Background(), s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d answers, %d errors\n", r.Protocol, r.Answered, r.Errors.Total())
	// Output: HTTP/1.1 over TLS: 10 answers, 0 errors
}
