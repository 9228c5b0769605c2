package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzReadSlices requires that each line of a slices file is a slice, and that slices stay the same
// if they are written and read again.
func FuzzReadSlices(f *testing.F) {
	const head = `{"version":1,"trials":["a","b"],"rounds":2}` + "\n"
	f.Add([]byte(head + `{"round":1,"place":1,"target":1,"beganNs":5,"requests":7,"cpuNs":-1,` +
		`"idleCPUNs":[1,2]}` + "\n"))
	f.Add([]byte(head + `{"target":2}` + "\n"))
	f.Add([]byte(head + `{"round":1}` + "\n" + `{"round":`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		top, all, err := readSlices("x", bytes.NewReader(text))
		if err != nil {
			return
		}
		if top.Version != SlicesVersion || len(all) > bytes.Count(text, []byte("{")) {
			t.Errorf("version %d, %d slices of %q", top.Version, len(all), text)
		}
		for _, s := range all {
			if s.Target < 0 || s.Target >= len(top.Trials) {
				t.Errorf("a slice of target %d of %d", s.Target, len(top.Trials))
			}
		}
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		if err := e.Encode(top); err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if err := e.Encode(&all[i]); err != nil {
				t.Fatal(err)
			}
		}
		_, again, err := readSlices("x", &out)
		if err != nil || len(again) != len(all) {
			t.Fatalf("%d slices are written, %d read, %v", len(all), len(again), err)
		}
		for i := range all {
			if len(all[i].IdleCPUNs) == 0 {
				all[i].IdleCPUNs = nil // which is left out of the file
			}
			if !reflect.DeepEqual(again[i], all[i]) {
				t.Errorf("%+v is read as %+v", all[i], again[i])
			}
		}
	})
}
