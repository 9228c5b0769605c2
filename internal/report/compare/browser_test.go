package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/format"
	"prony.example/internal/server/app"
	"prony.example/record"
)

// asked is one comparison that both programs make.
type asked struct {
	name string
	a, b Side
	o    Options
}

// answers is how the script is run outside of a page: two runs and what to compare, a line each.
const answers = `
const { readFileSync } = require("node:fs");
const { runInThisContext } = require("node:vm");
globalThis.window = globalThis;
globalThis.prony = { put() {} };
runInThisContext(readFileSync(process.argv[2], "utf8"));
for (const line of readFileSync(process.argv[3], "utf8").trim().split("\n")) {
	const { a, b, sides } = JSON.parse(line);
	let out;
	try {
		out = { comparison: prony.compare(a, b, sides) };
	} catch (e) {
		out = { error: e.message };
	}
	console.log(JSON.stringify(out));
}`

// TestTheBrowserComparesAlike holds the page's comparison of published numbers to Compare: every
// field of its document, each number within 1e-9 of it.
func TestTheBrowserComparesAlike(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on PATH: install Node to hold the page's comparisons to this package")
	}
	all := cases(rand.New(rand.NewPCG(20, 26)))
	got := inBrowser(t, node, all)
	refused, rowsSeen, numbers := 0, 0, 0
	outcomes := map[string]int{}
	for i, k := range all {
		want, err := Compare(k.a, k.b, k.o)
		if err != nil {
			refused++
			first, _, _ := strings.Cut(err.Error(), "; name one of each")
			first, _, _ = strings.Cut(first, "say which two")
			if said := strings.ReplaceAll(first, "results/", ""); got[i].Error == "" ||
				!strings.HasPrefix(got[i].Error, said) {
				t.Errorf("%s: it says %q, not %q", k.name, got[i].Error, said)
			}
			continue
		}
		if got[i].Error != "" {
			t.Errorf("%s: it fails: %s", k.name, got[i].Error)
			continue
		}
		for _, p := range want.Pairs {
			for _, r := range p.Rows {
				rowsSeen++
				outcomes[r.Outcome]++
			}
		}
		numbers += alike(t, k.name, got[i].Comparison, documentOf(t, want))
	}
	t.Logf("%d cases, %d refused, %d rows (%v), %d numbers", len(all), refused, rowsSeen, outcomes,
		numbers)
	for _, outcome := range []string{Better, Worse, Alike, Equal, Silent} {
		if outcomes[outcome] == 0 {
			t.Errorf("no case is %s", outcome)
		}
	}
	if refused == 0 || refused > len(all)/2 {
		t.Errorf("%d of %d cases were refused", refused, len(all))
	}
}

// answered is what the script said of a case.
type answered struct {
	Comparison map[string]any `json:"comparison"`
	Error      string         `json:"error"`
}

func numbersOf(s Side) Numbers {
	return NumbersOf(s, analyse(s, table.DefaultConfidence).study)
}

func inBrowser(t *testing.T, node string, all []asked) (out []answered) {
	t.Helper()
	dir := t.TempDir()
	var lines bytes.Buffer
	for _, k := range all {
		side := func(s Side) string { return strings.TrimSuffix(s.Head.ID+":"+s.Target, ":") }
		var one, line bytes.Buffer
		err := format.JSON(&one, struct {
			A     Numbers        `json:"a"`
			B     Numbers        `json:"b"`
			Sides map[string]any `json:"sides"`
		}{numbersOf(k.a), numbersOf(k.b), map[string]any{"a": side(k.a), "b": side(k.b),
			"control": k.o.Control, "unlike": k.o.Unlike}})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&line, one.Bytes()); err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line.Bytes(), '\n'))
	}
	files := map[string][]byte{"answers.cjs": []byte(answers), "cases": lines.Bytes(),
		app.Comparison: app.File(app.Comparison)}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, "answers.cjs", app.Comparison, "cases")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, stderr.String())
	}
	for line := range strings.Lines(string(text)) {
		var one answered
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	if len(out) != len(all) {
		t.Fatalf("node answered %d of %d cases", len(out), len(all))
	}
	return out
}

func documentOf(t *testing.T, c Comparison) (out map[string]any) {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, c); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	delete(out, "version")
	return out
}

// alike wants all of want in got, at every depth, and counts the numbers. What the page has beside
// it is its own affair.
func alike(t *testing.T, at string, got, want any) (numbers int) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, not %v", at, got, want)
			return 0
		}
		for key, x := range want {
			numbers += alike(t, at+"."+key, object[key], x)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			t.Errorf("%s is %v, not %v", at, got, want)
			return 0
		}
		for i, x := range want {
			numbers += alike(t, fmt.Sprintf("%s[%d]", at, i), list[i], x)
		}
	case float64:
		x, ok := got.(float64)
		if !ok || math.Abs(x-want) > 1e-9*math.Max(math.Abs(want), 1e-6) {
			t.Errorf("%s is %v, not %v", at, got, want)
		}
		return 1
	default:
		if got != want {
			t.Errorf("%s is %q, not %q", at, got, want)
		}
	}
	return numbers
}

// cases are comparisons of made-up runs: of two runs and within one, few blocks and many, noisy and
// without noise, with trials that are lost, other methods, other artifacts and controls.
func cases(rng *rand.Rand) (out []asked) {
	names := []string{"go-nethttp", "rust-axum", "java-netty", "node-express", "python-flask"}
	for i := range 160 {
		kinds := 1 + rng.IntN(len(names))
		noise := []float64{0, 0.002, 0.01, 0.05, 0.3}[rng.IntN(5)]
		a := madeUp(rng, "first", names[:kinds], noise)
		b := madeUp(rng, "second", names[:1+rng.IntN(len(names))], noise)
		for _, r := range b.Records {
			r.Time = r.Time.Add(time.Duration(rng.IntN(200)) * time.Hour)
		}
		k := asked{name: fmt.Sprintf("case %d", i), a: a, b: b}
		switch i % 8 {
		case 0, 1: // two of one run
			k.b = a
			k.a.Target, k.b.Target = names[rng.IntN(kinds)], names[rng.IntN(kinds)]
		case 2: // all rows of one run against its baseline
			k.b = a
		case 3:
			k.o.Control = names[0]
		case 4:
			k.a.Target = names[rng.IntN(kinds)]
		case 5: // measured in another way
			for _, r := range k.b.Records {
				if len(r.Loads) > 0 {
					r.Loads[0].Connections = 65
				}
			}
			k.o.Unlike = rng.IntN(2) == 0
		case 6: // other artifacts, and a control that is another one
			for _, r := range k.b.Records {
				r.Artifact.SHA256 = "another " + r.Target.Name
			}
			k.o.Control = []string{"", names[0]}[rng.IntN(2)]
		case 7: // several trials a block, as duets have
			for _, r := range k.b.Records {
				r.Block = (r.Block + 1) / 2
			}
		}
		out = append(out, k)
	}
	return out
}

func madeUp(rng *rand.Rand, id string, names []string, noise float64) Side {
	blocks := 1 + rng.IntN(9)
	rs := rows{}
	for _, name := range names {
		level := 1000 * math.Exp(3*rng.Float64())
		for range blocks {
			rs[name] = append(rs[name], level*math.Exp(noise*rng.NormFloat64()))
		}
	}
	s := runOf(id, noon, rs)
	slices.SortFunc(s.Records, func(x, y *record.Record) int {
		return strings.Compare(x.Trial, y.Trial)
	})
	if rng.IntN(2) == 0 {
		s.Head.Baseline = names[0]
	}
	for _, r := range s.Records {
		switch rng.IntN(14) {
		case 0:
			r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{
				Rule: "capacity", Load: "half", Grade: record.Invalid, Value: 0.1, Limit: 0.01,
				Unit: record.UnitPerS, Side: record.Above}}}
		case 1:
			r.Outcome, r.Loads = record.Failed, nil
			r.Failure = &record.Failure{Step: "ready", Error: "no answer\nat all"}
			r.Verdict.Grade = record.Invalid
		case 2:
			r.Loads[0].Service.CPUPerRequestNs = 0
		}
	}
	return s
}
