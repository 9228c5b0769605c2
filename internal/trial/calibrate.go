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

// Calibrate measures the rate that the generator reaches against a server that does nothing, on the
// cores and with the connections of the experiment's closed loads, in each protocol of its
// scenarios. A service near this generator limit may be faster than the generator can show. args is
// the command of the null server. Calibrate appends flags for the protocol and the path of a Unix
// socket, and the port as the last argument.
func (l *Lab) Calibrate(ctx context.Context, e Experiment, args []string) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil { // the interrupt caused any other error
			err = errors.New("interrupted before the first trial: nothing was measured")
		}
	}()
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	l.Ceilings, l.null = map[Ceiling]float64{}, &nullServer{args: args, again: map[Ceiling]int{}}
	for _, t := range e.Trials {
		if err := l.calibrate(ctx, e, t, args); err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
	}
	return nil
}

// calibrate measures the generator limits of a trial's loads that are not in l.Ceilings yet.
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
		// Other users can neither reach the socket nor occupy its path, because the folder belongs
		// to the lab. The null server starts in it, so that it runs as a user who can open the
		// socket.
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

// nullServer is what Calibrate has started, to start it again.
type nullServer struct {
	args  []string
	again map[Ceiling]int // how often a generator limit was measured again
}

// recalibrations is how often a generator limit is measured again in a run. A limit that is still
// below a service's rate then stays, and the service's windows are SUSPECT.
const recalibrations = 3

// recalibrate measures the generator limits again that a load of finished trials exceeds, and keeps
// the higher ones, for all loads of these trials. No service can be faster than a server that does
// nothing, so something disturbed the machine while such a limit was measured. All services of the
// trials have ended.
func (l *Lab) recalibrate(ctx context.Context, e Experiment, trials []Spec,
	records []*record.Record,
) {
	if l.null == nil || ctx.Err() != nil {
		return
	}
	for i, rec := range records {
		for k := range rec.Loads {
			l.recalibrateFor(ctx, e, trials[i], &rec.Loads[k])
		}
	}
	for _, rec := range records {
		for i := range rec.Loads {
			if out := &rec.Loads[i]; out.CeilingPerS > 0 { // of a closed load
				out.CeilingPerS = max(out.CeilingPerS, l.Ceilings[ceilingOf(out)])
			}
		}
	}
}

// ceilingOf returns which generator limit a load has.
func ceilingOf(out *record.Load) Ceiling {
	return Ceiling{out.Protocol, max(out.Streams, 1), out.Connections, len(out.Generators)}
}

// recalibrateFor measures the limit of a load again if the load exceeds it.
func (l *Lab) recalibrateFor(ctx context.Context, e Experiment, t Spec, out *record.Load) {
	c := ceilingOf(out)
	low := l.Ceilings[c]
	if low == 0 || out.ThroughputPerS <= low || l.null.again[c] == recalibrations {
		return
	}
	l.null.again[c]++
	delete(l.Ceilings, c)
	err := l.calibrate(ctx, e, t, l.null.args)
	measured := l.Ceilings[c]
	l.Ceilings[c] = max(measured, low)
	remark := fmt.Sprintf("%s exceeded the generator limit of %.0f requests/s, which was "+
		"therefore measured again: %.0f requests/s", t.Target, low, measured)
	if err != nil {
		remark = fmt.Sprintf("cannot measure the generator limit again: %v", err)
	}
	l.tell(Event{Trial: t.ID, Remark: remark})
}

// nullScene returns the scenario that the generator sends to the null server: one request in the
// scenario's protocol.
func nullScene(sc suite.Scenario) suite.Scenario {
	return suite.Scenario{Protocol: sc.Protocol, Unix: sc.Unix, Streams: sc.Streams,
		TLS:      suite.TLS{Insecure: true},
		Requests: []suite.Request{{Request: http.MethodGet + " " + generator.NullPath}}}
}

// protocolOf returns a scenario's protocol as records name it, or "" for HTTP/1.1 over TCP.
func protocolOf(sc suite.Scenario) string {
	if c := Speech(sc, "", netip.AddrPort{}); c != nil {
		return c.Protocol
	}
	return ""
}

// ceilings returns the generator limits that a trial's loads are compared with. Open loads have
// none.
func ceilings(t Spec) (out []Ceiling) {
	for _, l := range t.Loads {
		if l.Model != record.Open {
			out = append(out, Ceiling{protocolOf(t.Scene), max(t.Scene.Streams, 1), l.Connections,
				l.Generators})
		}
	}
	return out
}
