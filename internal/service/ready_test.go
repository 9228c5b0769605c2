package service

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
)

// starting is a service that listens, and is ready, some time after its start.
type starting struct {
	*pipes
	listens, ready time.Duration
	startNs        int64
	asked          []time.Duration // when, since the start
}

func start(t *testing.T, listens, ready time.Duration) *starting {
	s := &starting{listens: listens, ready: ready, startNs: clock.Mono()}
	s.pipes = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/ready":
			answer(w, 404, "", "")
		case s.since() < s.ready:
			answer(w, 503, plain, "starting")
		default:
			answer(w, 200, plain, "ready")
		}
	}))
	return s
}

func (s *starting) since() time.Duration { return time.Duration(clock.Mono() - s.startNs) }

func (s *starting) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.asked = append(s.asked, s.since())
	if s.since() < s.listens {
		return nil, errors.New("connection refused")
	}
	return s.pipes.dial(ctx, network, address)
}

// firstPoll returns the time of the first request at or after a moment: each request follows after
// a tenth of the time since the start, at least 1 ms and at most 20 ms.
func firstPoll(moment time.Duration) time.Duration {
	at := time.Duration(0)
	for at < moment {
		at += min(max(at/10, time.Millisecond), 20*time.Millisecond)
	}
	return at
}

func TestWaitReady(t *testing.T) {
	check := func(listens, ready time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, listens, ready)
			listenNs, readyNs, err := WaitReady(t.Context(), s.dial, "service:1", "/ready",
				s.startNs, nil)
			listened, readied := time.Duration(listenNs), time.Duration(readyNs)
			if err != nil || listened != firstPoll(listens) || readied != firstPoll(ready) {
				t.Errorf("%v, %v: got %v, %v, %v, want %v, %v", listens, ready, listened, readied,
					err, firstPoll(listens), firstPoll(ready))
			}
			if late := readied - ready; late > max(time.Millisecond, ready/10) ||
				late > 20*time.Millisecond {
				t.Errorf("%v late for %v", late, ready)
			}
			if s.dials != 1 {
				t.Errorf("%d connections, want 1", s.dials)
			}
		})
	}
	const ms = time.Millisecond
	check(0, 0)
	check(3*ms, 3*ms)
	check(5*ms, 9*ms)
	check(37*ms, 37*ms)
	check(37*ms, 100*ms)
	check(0, 5000*ms)
}

func TestReadyPoll(t *testing.T) {
	for elapsed, want := range map[time.Duration]time.Duration{
		0:                      time.Millisecond,
		10 * time.Millisecond:  time.Millisecond,
		50 * time.Millisecond:  5 * time.Millisecond,
		200 * time.Millisecond: 20 * time.Millisecond,
		time.Hour:              20 * time.Millisecond,
	} {
		if got := readyPoll(elapsed); got != want {
			t.Errorf("after %v: got %v, want %v", elapsed, got, want)
		}
	}
}

func TestWhatEndsTheWait(t *testing.T) {
	never, hour := 2*time.Hour, time.Hour
	check := func(name string, listens time.Duration, path string, end time.Duration, exits bool,
		want error, text string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, listens, never)
				exited := make(chan struct{})
				ctx, cancel := context.WithTimeout(t.Context(), hour)
				defer cancel()
				time.AfterFunc(end, func() {
					if exits {
						close(exited)
					} else {
						cancel()
					}
				})
				_, readyNs, err := WaitReady(ctx, s.dial, "service:1", path, s.startNs, exited)
				if !errors.Is(err, want) || err.Error() != text || readyNs != 0 {
					t.Errorf("got %v, %d, want %s", err, readyNs, text)
				}
				if s.since() != end {
					t.Errorf("ended after %v, want %v", s.since(), end)
				}
			})
		})
	}
	const what = "wait until GET /ready on service:1 returns status 200: "
	check("exit before it listens", never, "/ready", 1234*time.Microsecond, true, ErrExited,
		what+"the service exited before it was ready; last: connection refused")
	check("exit before it is ready", 0, "/ready", 1234*time.Microsecond, true, ErrExited,
		what+"the service exited before it was ready; last: status 503")
	check("the context", 0, "/ready", 1234*time.Microsecond, false, context.Canceled,
		what+"context canceled; last: status 503")
	check("another path", 0, "/gone", time.Second, true, ErrExited,
		strings.Replace(what, "/ready", "/gone", 1)+
			"the service exited before it was ready; last: status 404")
}

func TestWaitReadyAsksAgainWhereNothingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, first := clock.Mono(), true
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if first {
				first = false
				<-r.Context().Done() // until the client hangs up
				return
			}
			answer(w, 200, "", "")
		}))
		listenNs, readyNs, err := WaitReady(t.Context(), p.dial, "service:1", "/", began, nil)
		// The limit of 2 s for the first request, then a wait of 20 ms.
		if err != nil || listenNs != 0 || time.Duration(readyNs) != 2020*time.Millisecond {
			t.Errorf("got %d, %v, %v", listenNs, time.Duration(readyNs), err)
		}
	})
}

func TestExitEndsAQuestionUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, exited := clock.Mono(), make(chan struct{})
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		time.AfterFunc(time.Second, func() { close(exited) })
		_, _, err := WaitReady(t.Context(), p.dial, "service:1", "/", began, exited)
		if since := time.Duration(clock.Mono() - began); !errors.Is(err, ErrExited) ||
			since != time.Second {
			t.Errorf("got %v after %v", err, since)
		}
	})
}

// quick is a client over UDP: there is no connection before the first answer.
type quick struct {
	http.RoundTripper // not used
	dial              Dial
	since             func() time.Duration
	answers           time.Duration
}

func (q quick) Connect(ctx context.Context) error {
	if _, err := q.dial(ctx, "udp", "a"); err != nil {
		return err
	}
	if q.since() < q.answers {
		return errors.New("nobody answers")
	}
	return nil
}

// An open UDP socket does not show that a server listens.
func TestListensInDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 0, 0)
		const answers = 30 * time.Millisecond
		speak := func(dial Dial) Asker { return quick{nil, dial, s.since, answers} }
		nobody := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
		listens, ready, err := WaitReadyIn(t.Context(), speak, nobody, "a", "", s.startNs, nil)
		if want := int64(firstPoll(answers)); err != nil || listens != want || ready != want {
			t.Errorf("listens after %d, ready after %d, want %d: %v", listens, ready, want, err)
		}
	})
}

// A service of another protocol is explained with the option for it.
func TestOtherProtocols(t *testing.T) {
	for answer, want := range map[string]string{"\x00\x00\x00\x04\x00\x00": "--protocol h2c",
		"": "--protocol https", "HTTP/1.1 503 No\r\n\r\n": "status 503"} {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = theirs.Read(make([]byte, 1000))
				_, _ = io.WriteString(theirs, answer)
				_ = theirs.Close()
			}()
			return ours, nil
		}
		synctest.Test(t, func(t *testing.T) {
			exited := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(exited) })
			_, _, err := WaitReady(t.Context(), dial, "service:1", "/", clock.Mono(), exited)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", answer, err, want)
			}
		})
	}
}
