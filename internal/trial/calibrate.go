package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"prony.example/internal/generator"
	"prony.example/internal/launch"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/record"
)

// Calibrate measures what the generator reaches against a server that does nothing, on the cores
// and with the connections of the experiment's closed loads, in each protocol that it speaks. A
// service near that ceiling may be faster than anybody here can tell. args starts the null server,
// which gets its protocol, and the path of a Unix socket, by flags, and the port as its last
// argument.
func (l *Lab) Calibrate(ctx context.Context, e Experiment, args []string) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil { // whatever broke off then
			err = errors.New("interrupted before the first trial: nothing was measured")
		}
	}()
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	l.Ceilings = map[Ceiling]float64{}
	for _, t := range e.Trials {
		if err := l.calibrate(ctx, e, t, args); err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
	}
	return nil
}

// calibrate does it for the loads of a trial whose ceilings are not known.
func (l *Lab) calibrate(ctx context.Context, e Experiment, t Spec, args []string) (err error) {
	var open []Ceiling
	for _, c := range ceilings(t) {
		if l.Ceilings[c] == 0 && !slices.Contains(open, c) {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return nil
	}
	port, err := l.Port()
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	sc, dir := nullScene(t.Scene), l.Dir
	args = append(slices.Clone(args), "--protocol", cmp.Or(sc.Protocol, suite.Protocols[0]))
	if sc.Unix != "" {
		// A folder of the lab's own: nobody else gets to the socket, or can be there before it. The
		// null server starts in it, so that it runs as who gets to it.
		if dir, err = os.MkdirTemp("", "prony-null-"); err != nil {
			return fmt.Errorf("make a folder for the null server's socket: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		sc.Unix = filepath.Join(dir, "socket")
		args = append(args, "--unix", sc.Unix)
	}
	speech := Speech(sc, "", addr)
	proc, err := l.Launcher.Launch(ctx, launch.Spec{
		Name: "null", Dir: dir, Args: append(args, fmt.Sprint(port)),
		Cores: l.Layout.Service, CPUs: e.Trials[0].Limits.CPUs,
		LogFile: filepath.Join(l.Dir, "logs", "null.log"),
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, proc.Stop(processes.OneGrace)) }()
	bounded, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	if _, _, err := service.WaitReadyIn(bounded, Speaker(speech, "", addr), l.Dial, addr.String(),
		"", proc.Began(), proc.Exited()); err != nil {
		return fmt.Errorf("wait for the null server: %w", err)
	}
	driver, err := l.Driver("", "", speech)
	if err != nil {
		return err
	}
	for _, c := range open {
		s := generator.Calibration(load.Spec{Name: "calibration", Address: addr,
			Connections: c.Connections, Cores: l.Layout.Load, Ahead: !l.Layout.Shared,
			Seed: e.Head.Seed, Part: load.Part{Of: c.Generators}}, speech)
		spread(&s, speech)
		res, err := driver.Offer(ctx, s)
		if err != nil {
			return err
		}
		l.Ceilings[c] = res.ThroughputPerS
	}
	return nil
}

// nullScene is what the null server is asked by a generator that speaks as the scenario does.
func nullScene(sc suite.Scenario) suite.Scenario {
	return suite.Scenario{Protocol: sc.Protocol, Unix: sc.Unix, Streams: sc.Streams,
		TLS:      suite.TLS{Insecure: true},
		Requests: []suite.Request{{Request: http.MethodGet + " " + generator.NullPath}}}
}

// protocolOf is what a scenario speaks, as records name it.
func protocolOf(sc suite.Scenario) string {
	if c := Speech(sc, "", netip.AddrPort{}); c != nil {
		return c.Protocol
	}
	return ""
}

// ceilings are those that a trial's loads are held against.
func ceilings(t Spec) (out []Ceiling) {
	for _, l := range t.Loads {
		if l.Model != record.Open {
			out = append(out, Ceiling{protocolOf(t.Scene), max(t.Scene.Streams, 1), l.Connections,
				l.Generators})
		}
	}
	return out
}
