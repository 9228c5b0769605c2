package dashboardtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// source is a reference to a data source.
type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// target is a query of a panel. The field with its text depends on the data source.
type target struct {
	Datasource    source `json:"datasource"`
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

// mapping gives values a text and a colour.
type mapping struct {
	Type    string `json:"type"`
	Options map[string]struct {
		Color string `json:"color"`
		Text  string `json:"text"`
	} `json:"options"`
}

type override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options any    `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  source `json:"datasource"`
	GridPos     struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit     string    `json:"unit"`
			Mappings []mapping `json:"mappings"`
		} `json:"defaults"`
		Overrides []override `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		Legend struct {
			ShowLegend bool `json:"showLegend"`
		} `json:"legend"`
		YAxis struct {
			Unit string `json:"unit"` // of a heat map
		} `json:"yAxis"`
	} `json:"options"`
	Targets []target `json:"targets"`
	Panels  []panel  `json:"panels"` // of a collapsed row
}

type variable struct {
	Name       string          `json:"name"`
	Label      string          `json:"label"`
	Type       string          `json:"type"` // query, or textbox: free text of the user
	Datasource source          `json:"datasource"`
	Definition string          `json:"definition"`
	Query      json.RawMessage `json:"query"` // {query} of a query, the text of a textbox
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Multi      bool            `json:"multi"`
	Refresh    int             `json:"refresh"`
}

type annotation struct {
	Name       string `json:"name"`
	BuiltIn    int    `json:"builtIn"`
	Datasource source `json:"datasource"`
	Expr       string `json:"expr"`
	IconColor  string `json:"iconColor"`
	Title      string `json:"titleFormat"`
	Target     target `json:"target"`
}

// board is a dashboard in Grafana's classic model.
// https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
type board struct {
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
	Panels     []panel  `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`

	file string // path from the root
	raw  string
}

// boards reads all dashboards, in the order of their files.
func boards(t *testing.T) []board {
	t.Helper()
	var files []string
	for _, folder := range []string{"helm/prony", "tester"} {
		found, err := filepath.Glob(filepath.Join(root, "deploy", folder, "dashboards/*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatal("there is no dashboard below deploy/")
	}
	var all []board
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		b.file = strings.TrimPrefix(filepath.ToSlash(file), root+"/")
		all = append(all, b)
	}
	return all
}

func parse(data []byte) (board, error) {
	b := board{raw: string(data)}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read a dashboard: %w", err)
	}
	return b, nil
}

// language is the language of a query; empty: none, as for Tempo's graph of services.
type language string

const (
	promQL   language = "PromQL"
	logQL    language = "LogQL"
	traceQL  language = "TraceQL"
	selector language = "a selector of profiles"
)

// query is a query of a dashboard, with its variables.
type query struct {
	in     language
	text   string
	where  string // for failures
	legend string // of a time series; its labels in {{}} must exist
	uid    string // of the data source
}

// languages are the query languages by type of data source.
var languages = map[string]language{
	"prometheus": promQL, "loki": logQL, "tempo": traceQL,
	"grafana-pyroscope-datasource": selector,
}

// queries returns all queries of a dashboard, except those of its variables.
func (b *board) queries() []query {
	var all []query
	for _, p := range b.flat() {
		for _, t := range p.Targets {
			q := query{in: languages[t.Datasource.Type], uid: t.Datasource.UID,
				where: fmt.Sprintf("%s: %q %s", b.UID, p.Title, t.RefID), legend: t.LegendFormat}
			switch {
			case q.in == traceQL && t.QueryType == "serviceMap":
				continue // it has no text
			case q.in == traceQL:
				q.text = t.Query
			case q.in == selector:
				q.text = t.LabelSelector
			default:
				q.text = t.Expr
			}
			all = append(all, q)
		}
	}
	for _, a := range b.Annotations.List {
		if a.BuiltIn == 0 {
			all = append(all, query{in: languages[a.Datasource.Type], text: a.Expr,
				where: fmt.Sprintf("%s: annotation %q", b.UID, a.Name), legend: a.Title,
				uid: a.Datasource.UID})
		}
	}
	return all
}

// flat returns the panels of a dashboard and of its rows, without the rows.
func (b *board) flat() []panel {
	var all []panel
	for _, p := range b.Panels {
		if p.Type == "row" {
			all = append(all, p.Panels...)
			continue
		}
		all = append(all, p)
	}
	return all
}
