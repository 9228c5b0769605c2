package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
	"prony.example/internal/trial"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// slicing is what starts of several targets side by side need on this machine.
func slicing() trial.Slicing {
	return trial.Slicing{
		Open: func(ctx context.Context, s load.Spec, engine string, speech *nethttp.Config) (
			trial.Loader, error) {
			if err := (load.Choice{Engine: engine, Speak: speech}).Set(&s); err != nil {
				return nil, err
			}
			l, err := load.Open(ctx, s)
			if err != nil { // a nil one would be a Loader
				return nil, err
			}
			return l, nil
		},
		Freeze:  func(p launch.Process) (trial.Freezer, error) { return &signals{p}, nil },
		Clock:   func(pids func() []int) trial.CPUClock { return &clocks{list: pids} },
		Machine: readMachine,
	}
}

type signals struct{ p launch.Process }

func (s *signals) Freeze() error { return s.send(unix.SIGSTOP) }
func (s *signals) Thaw() error   { return s.send(unix.SIGCONT) }
func (s *signals) Way() string {
	if len(s.p.PIDs()) == 0 {
		return record.FreezeOff
	}
	return record.FreezeSignals
}

func (s *signals) send(sig unix.Signal) error {
	for _, pid := range s.p.PIDs() {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("send %v to process %d: %w", sig, pid, err)
		}
	}
	return nil
}

type clocks struct {
	list func() []int
	pids []int
	last map[int]int64
}

func (c *clocks) Refresh() { c.pids = c.list() }

func (c *clocks) Read() (sum int64) {
	if len(c.pids) == 0 {
		return -1
	}
	for _, pid := range c.pids {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err == nil {
			sum += t.Nano()
		}
	}
	return sum
}

// readMachine reads /proc/stat and /proc/schedstat.
func readMachine() (stealNs, busyNs int64) {
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 8 {
			ticks, _ := strconv.ParseInt(f[8], 10, 64)
			stealNs = ticks * int64(time.Second) / 100
		}
	}
	if text, err := os.ReadFile("/proc/schedstat"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 7 && strings.HasPrefix(f[0], "cpu") {
				ns, _ := strconv.ParseInt(f[7], 10, 64)
				busyNs += ns
			}
		}
	}
	return stealNs, busyNs
}
