package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// devices is /proc/PID/net/dev of a container: 300 bytes over its loopback interface don't
// leave it; 5000 came in over its bridge and 70000 went out.
const devices = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:     300       3    0    0    0     0          0         0      300       3    0    0
  eth0:    5000      12    0    0    0     0          0         0    70000      14    0    0
`

func TestNetBytes(t *testing.T) {
	proc := t.TempDir()
	for name, text := range map[string]string{
		"net": devices, "7/net": devices, "8/net": devices[:len(devices)-40],
	} {
		dir := filepath.Join(proc, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dev"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Process 6 has the lab's network, whose other interfaces the load does not use.
	same := filepath.Join(proc, "6/net")
	if err := errors.Join(os.MkdirAll(same, 0o755),
		os.Link(filepath.Join(proc, "net/dev"), filepath.Join(same, "dev"))); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]int64{0: 300, 6: 300, 7: 75000, 8: unknown, 9: unknown} {
		host := openHost(proc, pid)
		if got := host.netBytes(make([]byte, 4096)); got != want {
			t.Errorf("process %d: %d bytes, want %d", pid, got, want)
		}
		host.close()
	}
}
