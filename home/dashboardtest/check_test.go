package dashboardtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/home/collector"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/boards"
)

// grafana answers as Grafana's HTTP API does: dashboards are those of the checkout, PromQL is put
// to the real collector, and every query of another language finds one frame.
type grafana struct {
	t      *testing.T
	store  string // address of the collector's queries
	boards []board
}

func (g grafana) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	uid, ofBoard := strings.CutPrefix(r.URL.Path, "/api/dashboards/uid/")
	of, ofSource := strings.CutPrefix(r.URL.Path, "/api/datasources/uid/mimir/resources/")
	switch {
	case user != "a" || password != "a":
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.URL.Path == "/api/search":
		var found []map[string]string
		for _, b := range g.boards {
			if slices.Contains(b.Tags, r.FormValue("tag")) {
				found = append(found, map[string]string{"uid": b.UID})
			}
		}
		g.write(w, found)
	case ofBoard:
		i := slices.IndexFunc(g.boards, func(b board) bool { return b.UID == uid })
		g.write(w, map[string]any{"dashboard": json.RawMessage(g.boards[i].Raw)})
	case ofSource:
		var got json.RawMessage
		g.get("/"+of+"?"+r.URL.RawQuery, &got)
		g.write(w, got)
	case r.URL.Path == "/api/ds/query":
		g.query(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (g grafana) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		g.t.Error(err)
	}
}

func (g grafana) get(path string, into any) {
	answer, err := http.Get("http://" + g.store + path)
	if err != nil {
		g.t.Error(err)
		return
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		g.t.Errorf("%s: %v", path, err)
	}
}

// query answers /api/ds/query. Grafana's server replaces its own variables.
func (g grafana) query(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Queries []struct {
			RefID, Expr string
			Datasource  struct{ Type string }
			Range       bool
		}
		From, To string
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		g.t.Error(err)
		return
	}
	q := asked.Queries[0]
	frames := []any{}
	frame := map[string]any{"data": map[string]any{"values": [][]int{{1}, {2}}}}
	if q.Datasource.Type != "prometheus" {
		g.write(w, results(q.RefID, "", []any{frame}))
		return
	}
	expr, unknown := fill(q.Expr, nil)
	if len(unknown) > 0 {
		g.write(w, results(q.RefID, fmt.Sprintf("unknown %v", unknown), nil))
		return
	}
	from, _ := strconv.ParseInt(asked.From, 10, 64)
	to, _ := strconv.ParseInt(asked.To, 10, 64)
	args := url.Values{"query": {expr}, "start": {strconv.FormatInt(from/1000, 10)},
		"end": {strconv.FormatInt(to/1000, 10)}, "step": {"15"}, "time": {fmt.Sprint(to / 1000)}}
	path := "/api/v1/query?"
	if q.Range {
		path = "/api/v1/query_range?"
	}
	var got struct {
		Error string
		Data  struct{ Result []any }
	}
	g.get(path+args.Encode(), &got)
	for range got.Data.Result {
		frames = append(frames, frame)
	}
	g.write(w, results(q.RefID, got.Error, frames))
}

func results(ref, problem string, frames []any) any {
	return map[string]any{"results": map[string]any{ref: map[string]any{"error": problem,
		"frames": frames}}}
}

// TestCheck sends the telemetry of prony stack check to the real collector, and checks the panels
// through a server that answers as Grafana does. It covers all of stack check but the programs of
// the stack: metrics that Tempo and Alloy make are missing here, and only these.
func TestCheck(t *testing.T) {
	home, err := collector.Start(t.Context(), collector.Config{Dir: t.TempDir(),
		GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Zipkin: "127.0.0.1:0", Query: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := home.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	recorded, err := boards.Recorded(root)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Wall()
	sender := boards.Sender{OTLP: "http://" + home.Endpoints().HTTP, HTTP: http.DefaultClient}
	if err := sender.Send(t.Context(), recorded, "2999-01-01T00-00-00Z-check", now); err != nil {
		t.Fatal(err)
	}
	fake := httptest.NewServer(grafana{t: t, store: home.Endpoints().Query, boards: dashboards(t)})
	defer fake.Close()
	g := boards.Grafana{Base: fake.URL, User: "a", Password: "a", HTTP: http.DefaultClient}
	shown, err := g.Boards(t.Context(), "prony")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := boards.Check(t.Context(), g, shown, 6*time.Minute, now)
	if err != nil {
		t.Fatal(err)
	}
	var lacking []string
	for _, r := range rows {
		if !r.Complete() {
			lacking = append(lacking, fmt.Sprintf("%s: %s: %d of %d %v", r.Board, r.Panel,
				r.WithData, r.Queries, r.Problems))
		}
	}
	want := []string{
		"Services: Duration of spans, p99: 0 of 1 []",
		"Services: Requests between services: 0 of 2 []",
		"Services: Spans a second by name: 0 of 1 []",
		"Cost of watching: Memory of Alloy: 0 of 1 []",
		"Cost of watching: Processors that Alloy used: 0 of 1 []",
		"Cost of watching: What Alloy took in and sent on: 0 of 6 []",
	}
	slices.Sort(want)
	slices.Sort(lacking)
	if !slices.Equal(lacking, want) {
		t.Errorf("%d panels, without data:\n%s\nwant\n%s", len(rows),
			strings.Join(lacking, "\n"), strings.Join(want, "\n"))
	}
	g.Password = "b"
	_, err = g.Boards(t.Context(), "prony")
	if err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong password: %v, want an error that names 401", err)
	}
}
