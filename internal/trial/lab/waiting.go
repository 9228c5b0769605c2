package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
)

// hintAfter is the time after which the reason of a target's wait is reported.
const hintAfter = 3 * time.Second

// candidate is a started target that is not ready yet.
type candidate struct {
	service *service.Service
	name    string
	path    string // of readiness; empty: the first connection
	system  *processes.System
	built   *service.Built
}

// patient waits for a target. For a service of the user's own, it soon reports why the service is
// not ready, and ends the wait if more time cannot help: the service listens elsewhere, or responds
// with a redirect or a refusal.
func (v Visitor) patient(ctx context.Context, name string, bound time.Duration,
	wait func(context.Context) error, c candidate) error {
	if v.Hint == "" {
		return wait(ctx)
	}
	notYet := errors.New("not yet")
	var wrong error
	for i := range 2 { // some services open a second port first, so check again
		early, cancel := context.WithTimeoutCause(ctx, hintAfter, notYet)
		err := wait(early)
		cancel()
		if !errors.Is(err, notYet) {
			return c.described(err)
		}
		if final := c.refused(err); final != nil {
			return final
		}
		if wrong = v.elsewhere(ctx, c); wrong == nil {
			v.Tell.Say(fmt.Sprintf("%s, waiting up to %v: %v%s%s", name, bound, err,
				c.listens(), c.usual(err)))
			break
		}
		if i == 0 {
			v.Tell.Say(fmt.Sprintf("%s: %v", name, wrong))
		}
	}
	if wrong != nil {
		return wrong
	}
	return c.described(wait(ctx))
}

// described adds to an error of a wait where the target listens instead, and what to do about the
// status of its responses.
func (c candidate) described(err error) error {
	if err == nil || errors.Is(err, service.ErrExited) {
		return err
	}
	return fmt.Errorf("%w%s%s", err, c.listens(), c.usual(err))
}

// refused returns the error for a response that stays as it is, however long the wait: redirects
// and missing credentials, and any response of a service that already runs. nil: wait on.
func (c candidate) refused(err error) error {
	status, is := errors.AsType[*service.StatusError](err)
	if !is {
		return nil
	}
	stays := status.Status >= 300 && status.Status < 400 ||
		status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden
	if !stays && !c.built.Attached.IsValid() {
		return nil
	}
	return fmt.Errorf("GET %s returns %w, but a ready service must return status 200%s", c.path,
		status, ". "+useReady)
}

// useReady is the hint for a readiness path that never returns status 200.
const useReady = "Set a path that returns 200, such as --ready /health, or --ready - to wait " +
	"only for a connection (in prony.yaml: ready)"

// usual returns a hint for a service that responds, but not with status 200.
func (c candidate) usual(err error) string {
	if _, is := errors.AsType[*service.StatusError](err); !is {
		return ""
	}
	return ". If the service is ready with this status, change the path. " + useReady
}

// listens returns a remark about the addresses at which a target listens instead of its own; empty:
// there are none.
func (c candidate) listens() string {
	if c.built.Attached.IsValid() {
		return ""
	}
	var addresses []string
	for _, s := range socketsOf(c.system) {
		if addr := c.system.Addr(); s.Port == int(addr.Port()) && s.Reaches(addr.Addr()) {
			return ""
		}
		addresses = append(addresses, s.String())
	}
	if len(addresses) == 0 {
		return ""
	}
	return "; its processes listen on " + strings.Join(addresses, ", ")
}

// elsewhere returns the error of a target that listens at another address or responds on another
// port; nil: it does not.
func (v Visitor) elsewhere(ctx context.Context, c candidate) error {
	if c.built.Attached.IsValid() { // it has no $PORT
		return nil
	}
	assigned := c.system.Addr()
	sockets := slices.DeleteFunc(socketsOf(c.system), func(s host.Socket) bool {
		return s.Port != int(assigned.Port())
	})
	if len(sockets) > 0 && !slices.ContainsFunc(sockets, func(s host.Socket) bool {
		return s.Reaches(assigned.Addr())
	}) {
		return &wrongAddressError{sockets[0], assigned}
	}
	return v.findStray(ctx, c)
}

// wrongAddressError is the error of a target that listens on an address at which Prony does not
// connect.
type wrongAddressError struct {
	socket   host.Socket
	assigned netip.AddrPort
}

// Error implements error.
func (e *wrongAddressError) Error() string {
	return fmt.Sprintf("the service listens on %v, but Prony connects to %v: configure it to "+
		"listen on %v, which is also in $HOST; the name localhost can mean ::1", e.socket,
		e.assigned, e.assigned.Addr())
}

// findStray sends requests to other ports of a target that is not ready, and returns a *strayError
// if it responds there. Without a path, an open port proves nothing, and it returns nil.
func (v Visitor) findStray(ctx context.Context, c candidate) error {
	if c.path == "" || v.Speak == nil {
		return nil
	}
	p := c.system
	for _, s := range socketsBeside(p) {
		addr := netip.AddrPortFrom(s.Addr, uint16(s.Port))
		if s.Wide {
			addr = netip.AddrPortFrom(p.Addr().Addr(), uint16(s.Port))
		}
		bounded, cancel := context.WithTimeout(ctx, askElsewhere)
		_, _, err := service.WaitReadyIn(bounded, v.Speak(c.service, addr), nil, addr.String(),
			c.path, p.Began(), p.Exited())
		cancel()
		status := (*service.StatusError)(nil)
		if err == nil || errors.As(err, &status) && status.Status < http.StatusInternalServerError {
			return &strayError{c.name, addr, s.Port, int(p.Addr().Port())}
		}
	}
	return nil
}

// explained adds to an error how a service ended, if it did, and its last output.
func (v Visitor) explained(err error, p *processes.System) error {
	ended := errors.Is(err, service.ErrExited)
	if ended {
		err = fmt.Errorf("%w (%s)", err, p.Exit())
	}
	log := p.Log(20)
	output := strings.Join(log, "\n  ")
	if len(log) == 0 {
		err = fmt.Errorf("%w; the service wrote no output", err)
	} else {
		err = fmt.Errorf("%w; output of the service:\n  %s", err, output)
	}
	if user := p.User(); ended && user != "" && slices.ContainsFunc(log, isDenied) {
		err = &otherUserError{err, user}
	}
	return err
}

// isDenied reports whether a line of a log says that a permission is missing, other than for a
// port.
func isDenied(line string) bool {
	return denied.MatchString(line) && !aboutPort.MatchString(line)
}

var aboutPort = regexp.MustCompile(`(?i)\b(bind|listen)`)

// denied matches what programs print if they lack a permission.
var denied = regexp.MustCompile(`(?i)permission denied|EACCES|EPERM|PermissionError|` +
	`operation not permitted|read-?only|unable to open database`)

// otherUserError is the error of a service that ended because its user lacks a permission.
type otherUserError struct {
	error
	user string
}

// Error implements error.
func (e *otherUserError) Error() string {
	return fmt.Sprintf("%v\nprony runs as root and starts services as user %s, who may not change "+
		"files of root. Give this user the files that the service writes (chown -R %[2]s), or "+
		"start services as root without its capabilities: --as-me", e.error, e.user)
}

// Unwrap returns the error of the service.
func (e *otherUserError) Unwrap() error { return e.error }

// needsHint reports whether an error lacks what to do, so that the general hint must follow.
func needsHint(err error) bool {
	var stray *strayError
	var status *service.StatusError
	var user *otherUserError
	var address *wrongAddressError
	return !errors.As(err, &stray) && !errors.As(err, &status) && !errors.As(err, &user) &&
		!errors.As(err, &address)
}
