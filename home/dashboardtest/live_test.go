package dashboardtest

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/boards"
)

var (
	ask = flag.String("ask", "", "put every query to a stack that is up, by data source: "+
		"mimir=http://127.0.0.1:9009/prometheus,loki=http://127.0.0.1:3100,"+
		"tempo=http://127.0.0.1:3200,pyroscope=http://127.0.0.1:4040,"+
		"prometheus=http://127.0.0.1:9090")
	until  = flag.Int64("until", 0, "with -ask: the end of the time looked at, Unix seconds")
	window = flag.Duration("window", 15*time.Minute, "with -ask: the length of that time")
)

// live is a running stack, by the uids of its data sources.
type live struct {
	base map[string]string
	end  time.Time
}

// TestLive sends every query to a running stack, over the time window before now, and reports the
// queries that it refuses or that find nothing. It skips data sources that -ask does not name.
func TestLive(t *testing.T) {
	if *ask == "" {
		t.Skip("no stack is named: see -ask")
	}
	l := live{base: map[string]string{}, end: clock.Wall()}
	if *until != 0 {
		l.end = time.Unix(*until, 0)
	}
	for _, one := range strings.Split(*ask, ",") {
		uid, base, ok := strings.Cut(one, "=")
		if !ok {
			t.Fatalf("-ask %s: want UID=URL", one)
		}
		l.base[uid] = base
	}
	for _, b := range dashboards(t) {
		if !slices.ContainsFunc(b.Templating.List, func(v variable) bool {
			return l.base[v.Datasource.UID] != ""
		}) {
			continue
		}
		all, _ := resolve(t, &b, l)
		for _, q := range b.Queries() {
			if l.base[q.UID] == "" {
				continue
			}
			q.Text, _ = fill(q.Text, all)
			n, err := l.count(q)
			switch {
			case err != nil:
				t.Errorf("%s: %v\n%s", q.Place, err, q.Text)
			case n == 0:
				t.Errorf("%s: nothing is found\n%s", q.Place, q.Text)
			}
		}
	}
}

// count returns the number of series, streams, traces or samples that a query finds.
func (l live) count(q query) (int, error) {
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	from, to := at(l.end.Add(-*window)), at(l.end)
	var got struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
		Traces      []json.RawMessage `json:"traces"`
		Flamebearer struct {
			NumTicks int `json:"numTicks"`
		} `json:"flamebearer"`
	}
	var err error
	switch q.In {
	case boards.PromQL:
		err = l.get(q.UID, "/api/v1/query_range", &got, "query", q.Text, "start", from, "end", to,
			"step", "15")
	case boards.LogQL:
		err = l.get(q.UID, "/loki/api/v1/query_range", &got, "query", q.Text,
			"start", from+"000000000", "end", to+"000000000")
	case boards.TraceQL:
		err = l.get(q.UID, "/api/search", &got, "q", q.Text, "start", from, "end", to)
	case boards.Selector:
		err = l.get(q.UID, "/pyroscope/render", &got, "query",
			"process_cpu:cpu:nanoseconds:cpu:nanoseconds"+q.Text, "from", from, "until", to,
			"format", "json")
	}
	return len(got.Data.Result) + len(got.Traces) + got.Flamebearer.NumTicks, err
}

func (l live) Values(uid, selector, label string) ([]string, error) {
	var got struct {
		Data []string `json:"data"`
	}
	err := l.get(uid, "/api/v1/label/"+label+"/values", &got, "match[]", selector)
	return got.Data, err
}

// get queries a data source and decodes its answer.
func (l live) get(uid, path string, into any, args ...string) error {
	form := url.Values{}
	for i := 0; i+1 < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	client := http.Client{Timeout: 2 * time.Minute}
	answer, err := client.Get(l.base[uid] + path + "?" + form.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", uid, answer.Status, body)
	}
	return json.Unmarshal(body, into)
}
