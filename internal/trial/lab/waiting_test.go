package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
)

// attached is a service that runs already, of which nothing but its responses is known.
var attached = candidate{name: "a", path: "/ready",
	built: &service.Built{Attached: netip.MustParseAddrPort("127.0.0.1:9")}}

// TestPatience checks when the reason of a wait is reported, how often, and when the wait ends. The
// bound is 10 s.
func TestPatience(t *testing.T) {
	const reason = "a, waiting up to 10s: nothing listens: not yet"
	check := func(what string, hint string, wait func(context.Context, time.Time) error,
		after time.Duration, fails string, said ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			heard := &listener{}
			v := Visitor{Lab: &Lab{Tell: heard}, Hint: hint}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			err := v.patient(ctx, "a", 10*time.Second, func(ctx context.Context) error {
				return wait(ctx, began)
			}, attached)
			if took := time.Since(began); took != after || fmt.Sprint(err) != fails ||
				!slices.Equal(heard.lines, said) {
				t.Errorf("%s: after %v, error %v, said %q; want %v, %s, %q", what, took, err,
					heard.lines, after, fails, said)
			}
		})
	}
	// readyAfter is a target that nothing listens for until then.
	readyAfter := func(d time.Duration) func(context.Context, time.Time) error {
		return func(ctx context.Context, began time.Time) error {
			select {
			case <-time.After(d - time.Since(began)):
				return nil
			case <-ctx.Done():
				return fmt.Errorf("nothing listens: %w", context.Cause(ctx))
			}
		}
	}
	check("soon", "hint", readyAfter(2*time.Second), 2*time.Second, "<nil>")
	check("later", "hint", readyAfter(9*time.Second), 9*time.Second, "<nil>", reason)
	check("never", "hint", readyAfter(time.Hour), 10*time.Second,
		"nothing listens: context deadline exceeded", reason)
	check("later, without a hint", "", readyAfter(9*time.Second), 9*time.Second, "<nil>")
	check("it exits", "hint", func(context.Context, time.Time) error { return service.ErrExited },
		0, service.ErrExited.Error())
	check("a status that stays", "hint", func(ctx context.Context, _ time.Time) error {
		<-ctx.Done()
		return errors.Join(context.Cause(ctx), &service.StatusError{Status: 404})
	}, hintAfter, "GET /ready returns status 404, but a ready service must return status 200. "+
		useReady)
}

// TestRefused checks which statuses end the wait for a service that Prony has started.
func TestRefused(t *testing.T) {
	started := candidate{path: "/", built: &service.Built{}}
	for status, final := range map[int]bool{200: false, 299: false, 300: true, 302: true,
		399: true, 400: false, 401: true, 402: false, 403: true, 404: false, 503: false} {
		err := error(&service.StatusError{Status: status})
		if got := started.refused(err); (got != nil) != final {
			t.Errorf("%d of a started service: %v", status, got)
		}
		if attached.refused(err) == nil {
			t.Errorf("%d of a service that runs already does not end the wait", status)
		}
	}
	if err := attached.refused(errors.New("connection refused")); err != nil {
		t.Errorf("no response: %v", err)
	}
}

// ownProcess is this test's own process, as a target with another address.
type ownProcess struct {
	launch.Process
	addr netip.AddrPort
}

func (p ownProcess) Addr() netip.AddrPort   { return p.addr }
func (p ownProcess) PIDs() []int            { return []int{os.Getpid()} }
func (p ownProcess) Groups() []launch.Group { return nil }

// TestElsewhere checks that a target that listens at another address of its port ends the wait, and
// that none of its other ports does.
func TestElsewhere(t *testing.T) {
	testsets.Live(t)
	const own, other, wide = "127.0.0.1", "127.0.0.2", "0.0.0.0"
	check := func(wrong bool, hosts ...string) {
		t.Helper()
		port := "0"
		for _, host := range hosts {
			l, err := net.Listen("tcp4", net.JoinHostPort(host, port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_, port, _ = net.SplitHostPort(l.Addr().String()) // it has a port
		}
		if port == "0" { // one that nothing listens on
			port = "1"
		}
		at := netip.MustParseAddrPort(own + ":" + port)
		c := candidate{built: &service.Built{}, system: &processes.System{
			Parts: []processes.Part{{Process: ownProcess{addr: at}}}}}
		err := Visitor{Lab: &Lab{}}.elsewhere(t.Context(), c)
		_, is := errors.AsType[*wrongAddressError](err)
		if is != wrong || (err != nil) != wrong {
			t.Errorf("%q: error %v, want one: %v", hosts, err, wrong)
		}
		remark, want := c.listens(), other+":"+port
		if wrong && !strings.Contains(fmt.Sprint(err), want) ||
			len(hosts) > 0 && strings.Contains(remark, want) != wrong {
			t.Errorf("%q: error %v, remark %q, want %s in both: %v", hosts, err, remark, want,
				wrong)
		}
	}
	check(false)
	check(false, own)
	check(false, wide)
	check(true, other)
	check(false, other, own)
	beside, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	check(false)
	check(true, other)
}
