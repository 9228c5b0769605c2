// Package boards reads the dashboards of deploy/ and extracts their queries. Send sends known
// telemetry to the stack, and Check puts every query of Grafana's dashboards to Grafana:
//
//	deploy/check/*.txt ─► Send ─► Alloy ─► stores ◄─ Grafana ◄─ Check ◄─ queries
//
// Non-goals: it starts nothing, and evaluates no query itself.
package boards

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Source is a reference to a data source.
type Source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Target is a query of a panel. The field with its text depends on the data source.
type Target struct {
	Datasource    Source `json:"datasource"`
	RefID         string `json:"refId"`
	Expr          string `json:"expr"`          // PromQL, LogQL
	Query         string `json:"query"`         // TraceQL
	QueryType     string `json:"queryType"`     // of Loki, Tempo and Pyroscope
	LabelSelector string `json:"labelSelector"` // of Pyroscope
	ProfileTypeID string `json:"profileTypeId"` // of Pyroscope
	LegendFormat  string `json:"legendFormat"`
	Format        string `json:"format"`
	Instant       bool   `json:"instant"`
}

// Mapping gives values a text and a colour.
type Mapping struct {
	Type    string `json:"type"`
	Options map[string]struct {
		Color string `json:"color"`
		Text  string `json:"text"`
	} `json:"options"`
}

// Override changes the fields of a panel that it matches.
type Override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options any    `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

// Panel is a panel, or a row with the panels below it.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  Source `json:"datasource"`
	GridPos     struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit     string    `json:"unit"`
			Mappings []Mapping `json:"mappings"`
		} `json:"defaults"`
		Overrides []Override `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		Legend struct {
			ShowLegend bool `json:"showLegend"`
		} `json:"legend"`
		YAxis struct {
			Unit string `json:"unit"` // of a heat map
		} `json:"yAxis"`
	} `json:"options"`
	Targets []Target `json:"targets"`
	Panels  []Panel  `json:"panels"` // of a collapsed row
}

// Variable is a variable of a dashboard.
type Variable struct {
	Name       string          `json:"name"`
	Label      string          `json:"label"`
	Type       string          `json:"type"` // query, or textbox: free text of the user
	Datasource Source          `json:"datasource"`
	Definition string          `json:"definition"`
	Query      json.RawMessage `json:"query"` // {query} of a query, the text of a textbox
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Multi      bool            `json:"multi"`
	Refresh    int             `json:"refresh"`
}

// Annotation is a query whose results a dashboard shows as marks.
type Annotation struct {
	Name       string `json:"name"`
	BuiltIn    int    `json:"builtIn"`
	Datasource Source `json:"datasource"`
	Expr       string `json:"expr"`
	IconColor  string `json:"iconColor"`
	Title      string `json:"titleFormat"`
	Target     Target `json:"target"`
}

// Board is a dashboard in Grafana's classic model.
// https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
type Board struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	Description   string `json:"description"`
	SchemaVersion int    `json:"schemaVersion"`
	Timezone      string `json:"timezone"`
	Refresh       string `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Tags       []string `json:"tags"`
	Panels     []Panel  `json:"panels"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []Annotation `json:"list"`
	} `json:"annotations"`

	File string `json:"-"` // path from the root
	Raw  string `json:"-"` // as it was read
}

// Read reads the dashboards of a checkout, in the order of their files.
func Read(root string) ([]Board, error) {
	var files []string
	for _, folder := range []string{"helm/prony", "tester"} {
		matches, err := filepath.Glob(filepath.Join(root, "deploy", folder, "dashboards/*.json"))
		if err != nil {
			return nil, err
		}
		files = append(files, matches...)
	}
	if len(files) == 0 {
		return nil, errors.New("there is no dashboard below " + filepath.Join(root, "deploy"))
	}
	var boards []Board
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		b, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		b.File = strings.TrimPrefix(filepath.ToSlash(file), filepath.ToSlash(root)+"/")
		boards = append(boards, b)
	}
	return boards, nil
}

// Parse reads a dashboard.
func Parse(data []byte) (Board, error) {
	b := Board{Raw: string(data)}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read a dashboard: %w", err)
	}
	return b, nil
}

// Language is the language of a query; empty: none, as for Tempo's graph of services.
type Language string

// Languages of queries.
const (
	PromQL   Language = "PromQL"
	LogQL    Language = "LogQL"
	TraceQL  Language = "TraceQL"
	Selector Language = "a selector of profiles"
)

// Query is a query of a dashboard, with its variables.
type Query struct {
	In     Language
	Text   string
	Place  string // for failures
	Legend string // of a time series; its labels in {{}} must exist
	UID    string // of the data source
	Panel  string // title, or annotation "NAME"
	Target Target // as Grafana sends it, without a text for annotations
}

// languages are the query languages by type of data source.
var languages = map[string]Language{
	"prometheus": PromQL, "loki": LogQL, "tempo": TraceQL,
	"grafana-pyroscope-datasource": Selector,
}

// Queries returns all queries of a dashboard, except those of its variables.
func (b *Board) Queries() []Query {
	var all []Query
	for _, p := range b.Flat() {
		for _, t := range p.Targets {
			q := Query{In: languages[t.Datasource.Type], UID: t.Datasource.UID, Panel: p.Title,
				Place: fmt.Sprintf("%s: %q %s", b.UID, p.Title, t.RefID), Legend: t.LegendFormat,
				Target: t}
			switch {
			case q.In == TraceQL && t.QueryType == "serviceMap":
				continue // it has no text
			case q.In == TraceQL:
				q.Text = t.Query
			case q.In == Selector:
				q.Text = t.LabelSelector
			default:
				q.Text = t.Expr
			}
			all = append(all, q)
		}
	}
	for _, a := range b.Annotations.List {
		if a.BuiltIn == 0 {
			all = append(all, Query{In: languages[a.Datasource.Type], Text: a.Expr,
				Panel: fmt.Sprintf("annotation %q", a.Name), Legend: a.Title,
				Place: fmt.Sprintf("%s: annotation %q", b.UID, a.Name), UID: a.Datasource.UID,
				Target: Target{Datasource: a.Datasource, RefID: "A"}})
		}
	}
	return all
}

// Flat returns the panels of a dashboard and of its rows, without the rows.
func (b *Board) Flat() []Panel {
	var all []Panel
	for _, p := range b.Panels {
		if p.Type == "row" {
			all = append(all, p.Panels...)
			continue
		}
		all = append(all, p)
	}
	return all
}
