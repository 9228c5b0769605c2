package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prony/internal/launch"
	"prony/internal/load"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/system"
)

// calibration is how long the null server is loaded for each number of connections.
const calibration = time.Second

// Calibrate measures what the generator reaches against a server that does nothing, on the cores
// and with the connections of the experiment's closed loads. A service near that ceiling may be
// faster than anybody here can tell. args starts the null server, which gets the port as its last
// argument.
func (l *Lab) Calibrate(ctx context.Context, e Experiment, args []string) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil { // whatever broke off then
			err = errors.New("interrupted before the first trial: nothing was measured")
		}
	}()
	port, err := l.Port()
	if err != nil {
		return fmt.Errorf("calibrate: find a free port: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	proc, err := l.Launcher.Launch(ctx, launch.Spec{
		Name: "null", Dir: l.Dir, Args: append(args, fmt.Sprint(port)),
		Cores: l.place().Service, CPUs: e.Trials[0].Limits.CPUs,
		LogFile: filepath.Join(l.Dir, "logs", "null.log"),
	})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer func() { err = cmp.Or(err, proc.Stop(system.OneGrace)) }()
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	bounded, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	if _, _, err := service.WaitReady(bounded, l.Dial, addr.String(), "/", proc.Began(),
		proc.Exited()); err != nil {
		return fmt.Errorf("calibrate: wait for the null server: %w", err)
	}
	by, err := l.Driver("", "")
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	l.Ceilings = map[int]float64{}
	for _, c := range closedConnections(e.Trials) {
		res, err := by.Offer(ctx, Calibration(load.Spec{Name: "calibration", Address: addr,
			Connections: c, Cores: l.place().Load, Seed: e.Head.Seed}))
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		l.Ceilings[c] = res.ThroughputPerS
	}
	return nil
}

// Calibration makes a load one that finds the generator's ceiling, on the cores and connections
// that it has, against a null server at its address.
func Calibration(s load.Spec) load.Spec {
	s.Model, s.Lead, s.Window = result.Closed, calibration/5, calibration
	s.Drain, s.Timeout = calibration, calibration
	s.Scenario = load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/", WantSize: -1}}}
	return s
}

func closedConnections(trials []Spec) (out []int) {
	for _, t := range trials {
		for _, l := range t.Loads {
			if l.Model != result.Open && !slices.Contains(out, l.Connections) {
				out = append(out, l.Connections)
			}
		}
	}
	return out
}
