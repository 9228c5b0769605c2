package pyspy

import (
	"strings"
	"testing"
)

// TestLongLine checks that a long line does not end the reading.
func TestLongLine(t *testing.T) {
	r := &recording{reply: make(chan struct{})}
	started := make(chan struct{})
	r.listen(strings.NewReader(strings.Repeat("x", 1<<20)+"\n"+begun+"\n"), started)
	select {
	case <-started:
	default:
		t.Error("it has begun, and nobody has heard")
	}
}
