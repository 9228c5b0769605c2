package dashboardtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources are the data sources that deploy/ provisions, with their types.
var sources = map[string]string{
	"mimir": "prometheus", "prometheus": "prometheus", "loki": "loki", "tempo": "tempo",
	"pyroscope": "grafana-pyroscope-datasource", "-- Grafana --": "grafana",
}

// types are the types of panels included in every Grafana from 9.4 on.
var types = []string{"stat", "timeseries", "table", "bargauge", "state-timeline", "heatmap",
	"histogram", "logs", "traces", "nodeGraph", "text", "flamegraph", "row"}

// colours of verdicts are from a palette that colour-blind people can distinguish: Okabe and Ito,
// Color Universal Design, 2008. The word is always beside the colour.
var colours = map[string]string{"VALID": "#009E73", "SUSPECT": "#E69F00", "INVALID": "#D55E00"}

func TestBoards(t *testing.T) {
	seen := map[string]string{}
	for _, b := range dashboards(t) {
		for _, problem := range whole(&b) {
			t.Errorf("%s: %s", b.File, problem)
		}
		for _, name := range []string{"uid " + b.UID, "title " + b.Title} {
			if other, ok := seen[name]; ok {
				t.Errorf("%s: %s has the same %s", b.File, other, name)
			}
			seen[name] = b.File
		}
		if !strings.HasSuffix(b.File, "/"+b.UID+".json") {
			t.Errorf("%s: the file is not named by its uid, %s", b.File, b.UID)
		}
		tester := strings.HasPrefix(b.File, "deploy/tester/")
		for _, uid := range references(&b) {
			if uid == "prometheus" != tester && uid != "-- Grafana --" {
				t.Errorf("%s: it asks %s, which its Grafana does not have", b.File, uid)
			}
		}
	}
	for _, b := range dashboards(t) {
		for _, m := range toBoard.FindAllStringSubmatch(b.Raw, -1) {
			if _, ok := seen["uid "+m[1]]; !ok {
				t.Errorf("%s: it links to %s, which there is not", b.File, m[1])
			}
		}
	}
}

var (
	toBoard = regexp.MustCompile(`"/d/([\w-]+)`)
	aRun    = regexp.MustCompile(`20\d\d-\d\d-\d\d`) // begin of a run's name
)

// references returns the uids of all data sources in a dashboard.
func references(b *board) []string {
	var all []string
	for _, p := range b.Flat() {
		if p.Type != "text" {
			all = append(all, p.Datasource.UID)
		}
		for _, t := range p.Targets {
			all = append(all, t.Datasource.UID)
		}
	}
	for _, v := range b.Templating.List {
		if v.Type != "textbox" {
			all = append(all, v.Datasource.UID)
		}
	}
	for _, a := range b.Annotations.List {
		all = append(all, a.Datasource.UID)
	}
	return all
}

// whole describes what a dashboard lacks.
func whole(b *board) []string {
	var problems []string
	say := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if b.UID == "" || b.Title == "" || b.Description == "" || len(b.Tags) == 0 {
		say("it wants uid, title, description and tags")
	}
	if b.SchemaVersion != 39 || b.Timezone != "browser" || b.Refresh != "10s" ||
		b.Time.From != "now-15m" || b.Time.To != "now" {
		say("it wants schema 39, the browser's time, the last 15 min and a refresh of 10 s")
	}
	if found := aRun.FindString(b.Raw); found != "" {
		say("it names a run or a day, %s", found)
	}
	for _, p := range b.Flat() {
		for _, problem := range wholePanel(p) {
			say("panel %q: %s", p.Title, problem)
		}
	}
	for _, q := range b.Queries() {
		if sources[q.UID] == "" {
			say("%s asks the data source %q, which is none of ours", q.Place, q.UID)
		}
		if q.Text == "" {
			say("%s has no query", q.Place)
		}
	}
	for _, a := range b.Annotations.List {
		if a.BuiltIn == 0 && (a.Target.Expr != a.Expr || a.IconColor == "") {
			say("annotation %q wants a colour, and one query in both places", a.Name)
		}
	}
	ids := map[int]bool{}
	for _, p := range slices.Concat(b.Panels, b.Flat()) {
		if p.Type == "row" && p.Title == "" {
			say("a row has no title")
		}
		ids[p.ID] = true
	}
	if len(ids) < len(b.Panels) {
		say("two panels have the same id")
	}
	return append(problems, overlaps(b)...)
}

func wholePanel(p panel) []string {
	var problems []string
	say := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if p.Title == "" || len(p.Description) < 20 || !strings.Contains(p.Description, ".") {
		say("it wants a title, and a description that says what it answers")
	}
	if !slices.Contains(types, p.Type) {
		say("not every Grafana has the type %s", p.Type)
	}
	unit := p.FieldConfig.Defaults.Unit
	if p.Type == "heatmap" {
		unit = p.Options.YAxis.Unit
	}
	numbers := slices.Contains([]string{"stat", "timeseries", "bargauge", "heatmap",
		"state-timeline"}, p.Type)
	if numbers && unit == "" {
		say("it has no unit")
	}
	if p.Type == "timeseries" && !p.Options.Legend.ShowLegend {
		say("it shows no legend")
	}
	if p.Type != "text" && len(p.Targets) == 0 {
		say("it asks nothing")
	}
	refs := map[string]bool{}
	for _, t := range p.Targets {
		if t.RefID == "" || refs[t.RefID] {
			say("the name %q of a query is missing or there twice", t.RefID)
		}
		refs[t.RefID] = true
		if sources[t.Datasource.UID] != t.Datasource.Type {
			say("data source %s is a %s, not a %s", t.Datasource.UID, sources[t.Datasource.UID],
				t.Datasource.Type)
		}
		if p.Type == "flamegraph" && t.ProfileTypeID == "" {
			say("it says no type of profile")
		}
	}
	return append(problems, verdicts(p)...)
}

// verdicts reports verdicts with other colours than elsewhere.
func verdicts(p panel) []string {
	var problems []string
	wrong := func(grade, colour string) {
		if want, ok := colours[grade]; ok && !strings.EqualFold(colour, want) {
			problems = append(problems, fmt.Sprintf("%s is %s, not %s as everywhere", grade, colour,
				want))
		}
	}
	for _, m := range p.FieldConfig.Defaults.Mappings {
		for value, o := range m.Options {
			wrong(value, o.Color)
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			text := string(property.Value)
			switch grade, _ := o.Matcher.Options.(string); property.ID {
			case "color":
				wrong(grade, fixedColour.FindString(text))
			case "mappings":
				for _, m := range mapped.FindAllStringSubmatch(text, -1) {
					wrong(m[1], fixedColour.FindString(m[2]))
				}
			}
		}
	}
	return problems
}

var (
	fixedColour = regexp.MustCompile(`#[0-9A-Fa-f]{6}`)
	mapped      = regexp.MustCompile(`"(VALID|SUSPECT|INVALID)":\s*\{([^}]*)\}`)
)

// overlaps reports panels that overlap, or exceed the page's 24 columns.
func overlaps(b *board) []string {
	var problems []string
	for i, p := range b.Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
			problems = append(problems, fmt.Sprintf("panel %q is not on the page", p.Title))
		}
		for _, q := range b.Panels[:i] {
			h := q.GridPos
			if g.X < h.X+h.W && h.X < g.X+g.W && g.Y < h.Y+h.H && h.Y < g.Y+g.H {
				problems = append(problems, fmt.Sprintf("panels %q and %q lie on each other",
					p.Title, q.Title))
			}
		}
	}
	titles := map[string]bool{}
	for _, p := range b.Flat() {
		if titles[p.Title] {
			problems = append(problems, fmt.Sprintf("two panels have the title %q", p.Title))
		}
		titles[p.Title] = true
	}
	return problems
}

// The app of prony serve links to dashboards of the stack by their uids and titles.
func TestAppLeadsToDashboards(t *testing.T) {
	titles := map[string]string{}
	for _, b := range dashboards(t) {
		titles[b.UID] = b.Title
	}
	for name, pattern := range map[string]string{
		"grafana.tsx": `\["(prony-[a-z-]+)", ("[^"]+")\]`, "host.tsx": ` uid="(prony-[a-z-]+)"`} {
		text, err := os.ReadFile(filepath.Join(root, "web/app/pages", name))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s leads to no dashboard", name)
		}
		for _, m := range found {
			title, ok := titles[m[1]]
			if !ok || len(m) > 2 && m[2] != strconv.Quote(title) {
				t.Errorf("%s leads to %q, and there is a dashboard: %v, called %s", name, m[1:], ok,
					title)
			}
		}
	}
}
