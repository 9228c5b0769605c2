package host_test

import (
	"encoding/binary"
	"os"
	"testing"

	"prony.example/internal/observe/host"
	"prony.example/record"
)

// The kernel reports the request while PollIdle holds it. An earlier request of another program
// makes the test useless.
func TestPollIdle(t *testing.T) {
	const file = "/dev/cpu_dma_latency"
	bound := func() (us int32) {
		f, err := os.Open(file)
		if err != nil {
			t.Skip("the latency of idle cores cannot be read: ", err)
		}
		defer f.Close()
		if err := binary.Read(f, binary.NativeEndian, &us); err != nil {
			t.Fatal(err)
		}
		return us
	}
	if bound() == 0 {
		t.Skip("another program keeps idle cores awake")
	}
	release, err := host.PollIdle(record.IdlePolls)
	if err != nil {
		t.Skip("no right to keep idle cores awake: ", err)
	}
	if us := bound(); us != 0 {
		t.Errorf("idle cores may need %d µs while PollIdle holds, want 0", us)
	}
	release()
	if us := bound(); us == 0 {
		t.Error("idle cores still poll after the release")
	}
}

// Real machines and single cores are left as they are.
func TestIdle(t *testing.T) {
	for name, p := range map[string]record.Provenance{
		"real machine": {Cores: 4}, "one core": {Cores: 1, Hypervisor: true},
	} {
		if got := host.Idle(p); got != "" {
			t.Errorf("%s: idle cores %s", name, got)
		}
	}
}
