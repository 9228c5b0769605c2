package boards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxAnswer limits an answer of Grafana.
const maxAnswer = 32 << 20

// Grafana is a client of Grafana's HTTP API.
// https://grafana.com/docs/grafana/latest/developers/http_api/
type Grafana struct {
	Base           string // such as http://127.0.0.1:3000
	User, Password string
	HTTP           *http.Client
}

// Boards returns the dashboards that Grafana has with a tag.
func (g Grafana) Boards(ctx context.Context, tag string) ([]Board, error) {
	var listed []struct{ UID string }
	args := url.Values{"type": {"dash-db"}, "tag": {tag}, "limit": {"100"}}
	err := g.call(ctx, http.MethodGet, "/api/search?"+args.Encode(), nil, &listed)
	if err != nil {
		return nil, err
	}
	var boards []Board
	for _, f := range listed {
		var answered struct{ Dashboard json.RawMessage }
		path := "/api/dashboards/uid/" + url.PathEscape(f.UID)
		err := g.call(ctx, http.MethodGet, path, nil, &answered)
		if err != nil {
			return nil, err
		}
		b, err := Parse(answered.Dashboard)
		if err != nil {
			return nil, err
		}
		boards = append(boards, b)
	}
	return boards, nil
}

// values returns the values of a label from a Prometheus data source, through Grafana.
func (g Grafana) values(ctx context.Context, uid, selector, label string) ([]string, error) {
	var labels struct{ Data []string }
	args := url.Values{"match[]": {selector}}
	err := g.call(ctx, http.MethodGet, "/api/datasources/uid/"+url.PathEscape(uid)+
		"/resources/api/v1/label/"+url.PathEscape(label)+"/values?"+args.Encode(), nil, &labels)
	slices.Sort(labels.Data)
	return labels.Data, err
}

// answer is the part of Grafana's answer to a query that Count reads.
type answer struct {
	Results map[string]struct {
		Error  string
		Frames []struct {
			Data struct{ Values [][]json.RawMessage }
		}
	}
}

// Count puts a query to Grafana over a time window and returns how many frames with values it
// gets: series, streams, tables or profiles.
func (g Grafana) Count(ctx context.Context, q Query, from, to time.Time) (int, error) {
	ref := q.Target.RefID
	sent := map[string]any{
		"refId":      ref,
		"datasource": map[string]string{"uid": q.UID, "type": q.Target.Datasource.Type},
		"intervalMs": 15000, "maxDataPoints": 100,
	}
	switch q.In {
	case PromQL:
		sent["expr"], sent["instant"], sent["range"] = q.Text, q.Target.Instant, !q.Target.Instant
	case LogQL:
		sent["expr"], sent["queryType"] = q.Text, "range"
	case TraceQL:
		sent["query"], sent["queryType"], sent["limit"] = q.Text, "traceql", 20
	case Selector:
		sent["labelSelector"], sent["profileTypeId"] = q.Text, q.Target.ProfileTypeID
		sent["queryType"], sent["groupBy"] = "profile", []string{}
	}
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	var answers answer
	err := g.call(ctx, http.MethodPost, "/api/ds/query",
		map[string]any{"queries": []any{sent}, "from": ms(from), "to": ms(to)}, &answers)
	if err != nil {
		return 0, err
	}
	r, ok := answers.Results[ref]
	if !ok {
		return 0, fmt.Errorf("Grafana's answer has no result of the query %s", ref)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("Grafana: %s", r.Error)
	}
	n := 0
	for _, f := range r.Frames {
		if len(f.Data.Values) > 0 && len(f.Data.Values[0]) > 0 {
			n++
		}
	}
	return n, nil
}

// call sends a request, with a body as JSON unless it is nil, and decodes the answer.
func (g Grafana) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, g.Base+path, content)
	if err != nil {
		return err
	}
	r.SetBasicAuth(g.User, g.Password)
	r.Header.Set("Content-Type", "application/json")
	response, err := g.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("query Grafana: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of Grafana: %w", err)
	}
	// A query that a store refuses is answered with 400 and its error in the results.
	if response.StatusCode != http.StatusOK && !strings.Contains(string(text), `"results"`) {
		return fmt.Errorf("Grafana answers %s %s with %s: %.200s", method, path,
			response.Status, text)
	}
	return json.Unmarshal(text, into)
}
