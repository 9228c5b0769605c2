package machine

import (
	"os"
	"testing"

	"prony.example/internal/launch"
	"prony.example/record"
)

// ourselves is a target whose process is this program, as that of a URL may be.
type ourselves struct{ launch.Process }

func (ourselves) PIDs() []int             { return []int{os.Getpid()} }
func (ourselves) Groups() []launch.Group  { return nil }
func (ourselves) Exited() <-chan struct{} { return nil }

// TestFreezeRunsOn never stops a service that must run on, nor this program.
func TestFreezeRunsOn(t *testing.T) {
	for _, runsOn := range []bool{true, false} {
		f, err := slicing().Freeze(ourselves{}, runsOn)
		if err != nil || f.Way() != record.FreezeOff {
			t.Fatalf("way %v, error %v; want %s", f, err, record.FreezeOff)
		}
		if err := f.Freeze(); err != nil { // this process continues
			t.Error(err)
		}
	}
}
