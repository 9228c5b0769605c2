package entry_test

import (
	"reflect"
	"testing"

	"prony.example/internal/launch/process/entry"
)

// FuzzParse checks that no entry ends the program before it can report the cause, and that a parsed
// entry can be encoded and parsed again.
func FuzzParse(f *testing.F) {
	f.Add(entry.Entry{Parent: 1, Groups: []string{"/g"}, Cores: []int{0, 2}, Data: 5,
		Path: "/bin/a", Args: []string{"a", ""}, Env: []string{"X=y\n"}}.String())
	f.Add("")
	f.Add("9223372036854775807:9223372036854775807")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := entry.Parse(text)
		if err != nil {
			return
		}
		again, err := entry.Parse(e.String())
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%+v, %v, want %+v", again, err, e)
		}
	})
}
