package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// older replaces keys of a decoded document by their former names, and counts those by path.
func older(v any, path string, seen map[string]int) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = older(v[i], path, seen)
		}
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			former := name
			for place, now := range allRenamed() {
				parent, last := "", place
				if i := strings.LastIndexByte(place, '.'); i >= 0 {
					parent, last = place[:i+1], place[i+1:]
				}
				if now == name && parent == path {
					former = last
					seen[place]++
				}
			}
			out[former] = older(inner, path+former+".", seen)
		}
		return out
	}
	return v
}

func TestRecordsWithFormerKeysAreRead(t *testing.T) {
	var n filler
	var head Run
	full := &Record{}
	n.fill(reflect.ValueOf(&head).Elem())
	n.fill(reflect.ValueOf(full).Elem())
	head.Trials = []string{full.Trial}
	dir := t.TempDir()
	os.Remove(dir)
	if err := create(t, dir, head).Append(full); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, name := range []string{RunFile, TrialsFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var document any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&document); err != nil {
			t.Fatal(err)
		}
		former, err := json.Marshal(older(document, "", seen))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(former, bytes.TrimSpace(text)) {
			t.Errorf("%s has no former keys", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(former, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for place := range allRenamed() {
		if seen[place] == 0 {
			t.Errorf("no document has %s, which is renamed to %s", place, allRenamed()[place])
		}
	}
	got, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(bad) > 0 || len(records) != 1 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	head.Version, full.Version, full.Run = Version, Version, head.ID
	same(t, got, head)
	same(t, *records[0], *full)
}

func TestFormerValuesAreRead(t *testing.T) {
	dir := t.TempDir()
	head := `{"version":2,"id":"r","columns":["asks","p90","collector"]}`
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	line := `{"version":2,"trial":"t","run":"r","loads":[{"search":{"steps":[{"word":"held"},` +
		`{"word":"broken"},{"word":"invalid"}]},"generators":[{"findings":[` +
		`{"rule":"stood still"}]}]}],"verdict":{"findings":[{"rule":"unasked","remark":true,` +
		`"facts":{"said":["a","b"],"parts":[{"rule":"neighbours","of":7}]}},` +
		`{"rule":"foreign","observed":"1 s","limit":"2 s","hint":"","moves":[` +
		`{"number":"p99","by":0.5}]}]}}`
	records, bad := reread(t, dir, []byte(line+"\n"))
	if len(bad) > 0 || len(records) != 1 {
		t.Fatalf("%d records, bad %v", len(records), bad)
	}
	got, err := json.Marshal(struct {
		Loads    []Load
		Findings []Finding
	}{records[0].Loads, records[0].Verdict.Findings})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"outcome":"met"`, `"outcome":"missed"`, `"outcome":"invalid"`,
		`"rule":"stalled"`, `"rule":"backend calls"`, `"note":true`, `"messages":["a","b"]`,
		`"rule":"neighbors"`, `"total":7`, `"rule":"third-party tool"`,
		`"possibleBias":[{"metric":"p99","share":0.5}]`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	read, err := readHead(dir)
	if want := []string{"backendCalls", "p90", "gc"}; err != nil ||
		!reflect.DeepEqual(read.Columns, want) {
		t.Errorf("columns %v, error %v; want %v", read.Columns, err, want)
	}
}

func TestUpgradeLeavesWhatIsNoFormerKey(t *testing.T) {
	check := func(document, want string) {
		t.Helper()
		if got := string(Upgrade([]byte(document))); got != want {
			t.Errorf("%s is %s, want %s", document, got, want)
		}
	}
	check(`{"load":{"leadNs":1,"name":"leadNs"},"leadNs":2}`,
		`{"load":{"leadInNs":1,"name":"leadNs"},"leadNs":2}`)
	check(`{"loads":[{"leadNs" : 1},{"x":{"leadNs":1}}]}`,
		`{"loads":[{"leadInNs" : 1},{"x":{"leadNs":1}}]}`)
	check(`{"before":{"why":"\"before\":","a":["before"]}}`,
		`{"hostBefore":{"reason":"\"before\":","a":["before"]}}`)
	for _, same := range []string{``, `{`, `}]}`, `"`, `{"before`, `{"a":"\\\"before\":1"}`,
		`null`} {
		check(same, same)
	}
	deep := strings.Repeat(`{"before":[`, 1000)
	if got := string(Upgrade([]byte(deep))); got != strings.Replace(deep, "before", "hostBefore",
		1) {
		t.Error("keys of objects within others are renamed")
	}
}
