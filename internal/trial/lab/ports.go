package lab

import (
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
	addr           netip.AddrPort
	port, expected int
}

func (e *strayError) Error() string {
	hint := fmt.Sprintf("set --port %d (in prony.yaml: port)", e.port)
	if e.addr.Addr().Is6() {
		hint = fmt.Sprintf("configure it to listen on %s instead of %v, and set --port %d (in "+
			"prony.yaml: port)", service.Loopback, e.addr.Addr(), e.port)
	}
	return fmt.Sprintf("the service responds on port %d instead of $PORT, which is %d. Configure "+
		"it to listen on $PORT, or write {port} into its command. If its port is fixed, %s",
		e.port, e.expected, hint)
}

// socketsOf lists the sockets of this machine on which processes of a target listen.
func socketsOf(s *processes.System) []host.Socket {
	return host.SocketsOf(slices.Concat(s.PIDs(), s.Backing()))
}

// socketsBeside lists the sockets of a target without those at ports that Prony gave it.
func socketsBeside(s *processes.System) []host.Socket {
	return slices.DeleteFunc(socketsOf(s), func(socket host.Socket) bool {
		return slices.ContainsFunc(s.Parts, func(p processes.Part) bool {
			return int(p.Addr().Port()) == socket.Port
		})
	})
}

// portsBeside lists the ports of socketsBeside.
func portsBeside(s *processes.System) (ports []int) {
	for _, socket := range socketsBeside(s) {
		ports = append(ports, socket.Port)
	}
	return slices.Compact(ports)
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
				"listen on $PORT, or write {port} into their commands. If their port is fixed, "+
				"--port %[2]d (in prony.yaml: port) measures whole trials in turns",
				strings.Join(targets, ", "), port)
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
	if inner := errors.Unwrap(err); inner != nil {
		return strays(inner)
	}
	if e, ok := errors.AsType[*strayError](err); ok {
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
