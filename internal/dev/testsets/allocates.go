package testsets

import (
	"runtime/metrics"
	"testing"
)

// Allocates runs a function, and fails the test if the program allocates more than so many bytes
// meanwhile. A fuzz target bounds the memory and the work of a parser by it: unlike its time, the
// sum of allocations does not depend on the machine.
func Allocates(t testing.TB, most uint64, do func()) {
	t.Helper()
	before := allocated()
	do()
	if bytes := allocated() - before; bytes > most {
		t.Errorf("it allocates %d bytes, more than %d", bytes, most)
	}
}

// allocated is the number of bytes that the program has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
