package node

import (
	"testing"

	"prony.example/internal/observe/profile"
)

// FuzzRead checks that no response crashes the parser, and that profiles are valid.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"profile": {"nodes": [{"id": 1, "callFrame": {"functionName": "(root)"}, ` +
		`"children": [2]}, {"id": 2, "callFrame": {"functionName": "f", "url": "a.js"}}], ` +
		`"samples": [2, 1], "timeDeltas": [5, -5]}}`))
	f.Add([]byte(`{"profile": {"nodes": [{"id": 1, "callFrame": {}, "children": [1]}]}}`))
	f.Add([]byte(`{"profile": {"head": {"callFrame": {"functionName": "(root)"}, "selfSize": 1, ` +
		`"id": 1, "children": [{"callFrame": {}, "selfSize": 1e300}]}, ` +
		`"samples": [{"nodeId": 1}]}}`))
	f.Add([]byte(`{"profile": {"nodes": [null], "samples": [], "head": null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for kind, read := range map[string]func([]byte, *profile.Stacks) error{
			profile.CPU:   func(b []byte, s *profile.Stacks) error { return readCPU(b, s) },
			profile.Alloc: func(b []byte, s *profile.Stacks) error { return readHeap(b, s) },
		} {
			stacks := profile.NewStacks(kind)
			if read(b, stacks) == nil {
				if err := stacks.Profile().CheckValid(); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	})
}
