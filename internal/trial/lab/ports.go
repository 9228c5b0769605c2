package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial/processes"
)

// Ports are the TCP ports on which each target listens beside the port that Prony gave it, by the
// target's name.
type Ports map[string][]int

// askElsewhere limits the check whether a service responds on another port than its own.
const askElsewhere = time.Second

// strayError is the error of a target that responds on another port than Prony gave it.
type strayError struct {
	name           string
	port, expected int
}

func (e *strayError) Error() string {
	return fmt.Sprintf("the service responds on port %d instead of $PORT, which is "+
		"%d", e.port, e.expected)
}

// portsBeside lists the ports of this machine on which processes of a target listen, without those
// that Prony gave it.
func portsBeside(s *processes.System) []int {
	ports := host.PortsOf(slices.Concat(s.PIDs(), s.Backing()))
	return slices.DeleteFunc(ports, func(port int) bool {
		return slices.ContainsFunc(s.Parts, func(p processes.Part) bool {
			return int(p.Addr().Port()) == port
		})
	})
}

// findStray sends requests to other ports of a target that is not ready, and returns a *strayError
// if it responds there. Without a path, an open port proves nothing, and it returns nil.
func (v Visitor) findStray(ctx context.Context, s *service.Service, name, path string,
	p *processes.System) error {
	if path == "" || v.Speak == nil {
		return nil
	}
	for _, port := range portsBeside(p) {
		addr := netip.AddrPortFrom(p.Addr().Addr(), uint16(port))
		bounded, cancel := context.WithTimeout(ctx, askElsewhere)
		_, _, err := service.WaitReadyIn(bounded, v.Speak(s, addr), nil, addr.String(), path,
			p.Began(), p.Exited())
		cancel()
		if err == nil {
			return &strayError{name, port, int(p.Addr().Port())}
		}
	}
	return nil
}

// joinStrays replaces the errors of targets that respond on the same port, whatever $PORT is, with
// one error that names all of them.
func joinStrays(err error) error {
	names := map[int][]string{}
	for _, e := range strays(err) {
		names[e.port] = append(names[e.port], e.name)
	}
	for _, port := range slices.Sorted(maps.Keys(names)) {
		if targets := names[port]; len(targets) > 1 {
			return fmt.Errorf("start %s: all of these targets listen on port %d and ignore "+
				"$PORT. Targets run side by side, so each needs its own port: configure them to "+
				"listen on $PORT, or write {port} into their commands; for a container, set "+
				"--port", strings.Join(targets, ", "), port)
		}
	}
	return err
}

// strays returns all strayErrors in joined errors.
func strays(err error) (out []*strayError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			out = append(out, strays(part)...)
		}
		return out
	}
	var e *strayError
	if inner := errors.Unwrap(err); inner != nil {
		return strays(inner)
	}
	if errors.As(err, &e) {
		out = append(out, e)
	}
	return out
}

// CheckPorts returns an error if targets that would run side by side listen on the same further
// port: the second target cannot open it, or the first one responds for both.
func (l *Lab) CheckPorts(w Wish, ports Ports) error {
	if len(ports) == 0 {
		return nil
	}
	plan, err := l.Plan(w)
	if err != nil {
		return nil //nolint:nilerr // the run reports it
	}
	starts := map[string][]string{} // targets by start
	for _, t := range plan.Trials {
		if t.Start != "" && !slices.Contains(starts[t.Start], t.Target) {
			starts[t.Start] = append(starts[t.Start], t.Target)
		}
	}
	for _, start := range slices.Sorted(maps.Keys(starts)) {
		targets := slices.Sorted(slices.Values(starts[start]))
		for i, a := range targets {
			for _, b := range targets[i+1:] {
				if port, ok := common(ports[a], ports[b]); ok {
					hint := ""
					if b == a+adhoc.AgainSuffix {
						hint = ", or run without the control: --aa=false"
					}
					return fmt.Errorf("compare %s with %s: both listen on port %d in addition to "+
						"$PORT. They run side by side, so the second one cannot use this port, "+
						"or the first one responds for both. Derive this port from $PORT or "+
						"{port}, or compare whole trials in turns: --interleave "+
						"blocks%s", a, b, port, hint)
				}
			}
		}
	}
	return nil
}

// common returns a port that is in both lists.
func common(a, b []int) (port int, ok bool) {
	for _, port := range a {
		if slices.Contains(b, port) {
			return port, true
		}
	}
	return 0, false
}

// reportPorts records on which further ports a target listens, and reports if other machines can
// reach it.
func (v Visitor) reportPorts(name string, built *service.Built, p *processes.System) {
	ports := portsBeside(p)
	if v.Ports != nil && !built.Attached.IsValid() && len(ports) > 0 {
		v.Ports[name] = ports
	}
	if built.Images == nil && len(p.PIDs()) > 0 && host.Wide(int(p.Addr().Port())) {
		v.Tell.Say(name + " listens on all addresses of this machine, so other machines can " +
			"reach it. Configure it to listen only on $HOST (127.0.0.1)")
	}
}
