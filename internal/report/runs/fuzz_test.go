package runs

import (
	"encoding/json"
	"strings"
	"testing"

	"prony.example/record"
)

// FuzzProgress checks that Prony reads any content of a run's folder, and keeps the good parts.
func FuzzProgress(f *testing.F) {
	f.Add(`{"kind":"begin","pid":1,"processStart":"2"}`, `{"a":"b"}`)
	f.Add(`{"kind":"end","outcome":"done"}`+"\n"+`{"kind":"begin","pid":-1}`, "{}")
	f.Add(strings.Repeat("x", 3*maxTail)+"\n{", `{"`+strings.Repeat("x", 99)+`":""}`)
	f.Fuzz(func(t *testing.T, lines, labels string) {
		dir := t.TempDir()
		put(t, lines, dir, record.ProgressFile)
		put(t, labels, dir, "labels.json")
		if p := readProgress(dir); p.stamp.Size != int64(len(lines)) {
			t.Errorf("of %d bytes, %d were seen", len(lines), p.stamp.Size)
		}
		got, err := readLabels(dir)
		if err != nil {
			return
		}
		if b, err := json.Marshal(got); err != nil || CheckLabels(got) != nil {
			t.Errorf("labels %s were read: %v", b, err)
		}
	})
}
