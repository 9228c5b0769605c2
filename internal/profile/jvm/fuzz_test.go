package jvm

import (
	"bytes"
	"testing"
)

// FuzzDecode wants that nothing which jfr prints ends the program.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"recording": {"events": [{"type": "jdk.ExecutionSample", "values": {` +
		`"startTime": "x", "duration": "PT0.01S", "stackTrace": {"truncated": false, "frames": [{` +
		`"method": {"type": {"name": "a/B"}, "name": "c"}, "lineNumber": 1}]}}}]}}`))
	f.Add([]byte(`{"recording": {"events": [{"values": {"duration": "PT-9e9H-9M.S"}}, null, {}]}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		// An error is as good as an answer.
		_ = decode(bytes.NewReader(b), func(e event) { e.Values.StackTrace.frames() })
	})
}
