package agents

import (
	"os"
	"testing"
)

// FuzzRead requires that no file makes Read panic.
func FuzzRead(f *testing.F) {
	b, err := os.ReadFile("../../../agents.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("agents: [{name: a, levels: [{}]}]\n"))
	f.Add([]byte("agents: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := Read("agents.yaml", b); (err == nil) == (c == nil) {
			t.Errorf("%v beside %v", c, err)
		}
	})
}
