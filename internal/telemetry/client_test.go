package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeHome records the requests that it gets. A mark waits until hold is closed.
type fakeHome struct {
	mu   sync.Mutex
	got  []string
	hold chan struct{}
}

func (f *fakeHome) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ Name, ID, Trial string }
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.URL.Path == "/prony/mark" {
		<-f.hold
	}
	f.mu.Lock()
	f.got = append(f.got, strings.TrimSpace(strings.TrimPrefix(r.URL.Path, "/prony/")+" "+m.Name+
		m.ID))
	f.mu.Unlock()
	if m.Name == "refused" {
		http.Error(w, "not under way", http.StatusConflict)
		return
	}
	if r.URL.Path == "/prony/end" {
		_, _ = w.Write([]byte(`{"loads":{"high":{"spans":2}}}`)) // the client may have gone
	}
}

func TestClient(t *testing.T) {
	f := &fakeHome{hold: make(chan struct{})}
	server := httptest.NewServer(f)
	defer server.Close()
	c := NewClient(strings.TrimPrefix(server.URL, "http://"), "secret")
	defer c.Close()
	if err := c.Begin(t.Context(), Trial{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	// One mark is being sent, markQueue are queued, and the rest are dropped without waiting.
	for range 2*markQueue + 1 {
		c.Mark(Mark{Trial: "a", Kind: Open, Name: "x"})
	}
	close(f.hold)
	r := c.End(t.Context())
	told := len(f.got) - 2 // without trial and end
	if told < markQueue || told > markQueue+1 || f.got[0] != "trial a" ||
		f.got[len(f.got)-1] != "end" {
		t.Errorf("%d marks told, first %q, last %q; want %d or one more between trial and end",
			told, f.got[0], f.got[len(f.got)-1], markQueue)
	}
	if r.Loads["high"].Spans != 2 || !strings.Contains(r.Telemetry.Partial, "marks were not sent") {
		t.Errorf("%+v", r)
	}

	if err := c.Begin(t.Context(), Trial{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		c.Mark(Mark{Trial: "b", Kind: Open, Name: "refused"})
	}
	r = c.End(t.Context())
	if n := strings.Count(r.Telemetry.Partial, "not under way"); n != 3 ||
		!strings.Contains(r.Telemetry.Partial, "and further errors occurred") {
		t.Errorf("%q, want 3 of 9 refusals and that there were more", r.Telemetry.Partial)
	}
	if err := c.Begin(t.Context(), Trial{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	if r = c.End(t.Context()); r.Telemetry.Partial != "" {
		t.Errorf("%q of the trial before", r.Telemetry.Partial)
	}
}

// A collector that hangs delays a call only as long as the caller allows, and causes no failure.
func TestHomeThatHangs(t *testing.T) {
	leave := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-leave
	}))
	defer server.Close()
	defer close(leave)
	c := NewClient(strings.TrimPrefix(server.URL, "http://"), "secret")
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Begin(ctx, Trial{ID: "a"}); err == nil {
		t.Error("it began")
	}
	c.Mark(Mark{Trial: "a", Kind: Open, Name: "x"})
	r := c.End(ctx)
	if !strings.Contains(r.Telemetry.Partial, "notify the telemetry collector of trial a") ||
		!strings.Contains(r.Telemetry.Partial, "read the telemetry collector's report") {
		t.Errorf("%q", r.Telemetry.Partial)
	}
}

// Prony's own metrics go to a collector that answers, even after a refusal, and only once to one
// that does not answer. A single report, the next one, includes the error.
func TestPoints(t *testing.T) {
	var refuse, hang atomic.Bool
	var asked atomic.Int64
	leave := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prony/points" {
			_, _ = w.Write([]byte(`{}`)) // the client may have gone
			return
		}
		asked.Add(1)
		if refuse.Load() {
			http.Error(w, "3 old", http.StatusConflict)
		}
		if hang.Load() {
			<-leave
		}
	}))
	defer server.Close()
	defer close(leave)
	check := func(what string, c *Client, times int64, partial string) {
		t.Helper()
		asked.Store(0)
		for range 3 {
			limit := time.Minute
			if hang.Load() {
				limit = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			c.Points(ctx, Own{Trial: Trial{ID: "a"}})
			cancel()
		}
		// On a busy machine the time may be over before the request.
		if n := asked.Load(); n != times && (n != 0 || !hang.Load()) {
			t.Errorf("%s: asked %d times, want %d", what, n, times)
		}
		if err := c.Begin(t.Context(), Trial{ID: "b"}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{partial, ""} {
			if got := c.End(t.Context()).Telemetry.Partial; (got == "") != (want == "") ||
				!strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
	}
	c := NewClient(strings.TrimPrefix(server.URL, "http://"), "secret")
	defer c.Close()
	check("a home that takes it", c, 3, "")
	refuse.Store(true)
	check("a home that refuses", c, 3, "measurements of a to the telemetry collector: 3 old")
	refuse.Store(false)
	hang.Store(true)
	check("a home that hangs, after it was said that something is lost", c, 1, "")
	other := NewClient(strings.TrimPrefix(server.URL, "http://"), "secret")
	defer other.Close()
	check("a home that hangs", other, 1, "deadline exceeded")
}
