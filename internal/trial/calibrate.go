package trial

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"prony/internal/launch"
	"prony/internal/load"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/system"
)

// calibration is how long the null server is loaded for each number of connections.
const calibration = time.Second

// Calibrate measures what the generator reaches against a server that does nothing, on the cores
// and with the connections of the suite's closed loads. A service near that ceiling may be faster
// than anybody here can tell. args starts the null server, which gets the port as its last
// argument.
func (l *Lab) Calibrate(ctx context.Context, p *suite.Plan, args []string) (err error) {
	port, err := l.Port()
	if err != nil {
		return fmt.Errorf("calibrate: find a free port: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	proc, err := l.Launcher.Launch(ctx, launch.Spec{
		Name: "null", Dir: l.Dir, Args: append(args, fmt.Sprint(port)),
		Cores: l.place().Service, CPUs: p.Suite.Limits.CPUs,
		LogFile: filepath.Join(l.Dir, "logs", "null.log"),
	})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer func() { err = firstError(err, proc.Stop(system.OneGrace)) }()
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	bounded, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	if _, _, err := service.WaitReady(bounded, l.Dial, addr.String(), "/", proc.Began(),
		proc.Exited()); err != nil {
		return fmt.Errorf("calibrate: wait for the null server: %w", err)
	}
	anything := load.Request{Method: "GET", Path: "/", WantSize: -1}
	by, err := l.Driver("", "")
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	l.Ceilings = map[int]float64{}
	for _, c := range closedConnections(p.Suite) {
		res, err := by.Offer(ctx, load.Spec{
			Name: "calibration", Address: addr, Model: load.Closed, Connections: c,
			Lead: calibration / 5, Window: calibration, Drain: calibration, Timeout: calibration,
			Cores: l.place().Load, Seed: p.Suite.Seed,
			Scenario: load.Scenario{Requests: []load.Request{anything}},
		})
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		l.Ceilings[c] = res.ThroughputPerS
	}
	return nil
}

func closedConnections(s *suite.Suite) (out []int) {
	seen := map[int]bool{}
	for _, scene := range s.Scenarios {
		loads := s.LoadsOf(scene)
		if s.Capacity.Connections > 0 {
			pilot := suite.Trial{Role: suite.Pilot, Scenario: scene.Name}
			loads = append(loads, s.OfTrial(pilot)...)
		}
		for _, l := range loads {
			if l.Model == load.Closed && !seen[l.Connections] {
				seen[l.Connections] = true
				out = append(out, l.Connections)
			}
		}
	}
	return out
}
