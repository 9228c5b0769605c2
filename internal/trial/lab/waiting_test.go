package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/service"
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
