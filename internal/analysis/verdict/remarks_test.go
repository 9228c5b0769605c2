package verdict_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/record"
)

// remarked returns the rules with a remark on a record's service, which leave all numbers valid.
func remarked(t *testing.T, r *record.Record) (rules []string) {
	t.Helper()
	for _, f := range verdict.Judge(r).Findings {
		if f.Note {
			rules = append(rules, f.Load+" "+f.Rule)
			if f.Grade != valid || len(f.PossibleBias) > 0 || wording.Finding(f).Hint == "" {
				t.Errorf("a remark that is a doubt, or mute: %+v", f)
			}
		}
	}
	return rules
}

func TestRemarks(t *testing.T) {
	check := func(want string, change func(ld)) {
		t.Helper()
		r := healthy()
		change(&r.Loads[1])
		if got := strings.Join(remarked(t, r), ", "); got != want {
			t.Errorf("remarks %q, want %q", got, want)
		}
	}
	check("", func(ld) {})
	check("", pieces(39*ms-1, 0))
	check("peak delayed ack", pieces(39*ms, 0))
	check("peak delayed ack", pieces(51*ms, 10*ms))
	check("", pieces(51*ms+1, 0))
	check("", pieces(44*ms, 10*ms+1)) // no timer is so bad
	check("", func(l ld) {            // what a foreign tool does not tell
		l.ServiceTime, l.FirstByte = flat(10000, 44*ms), record.Dist{}
	})
	check("", func(l ld) { // which has no such timer
		pieces(44*ms, 0)(l)
		l.Protocol = "HTTP/3"
	})
	check("peak connections", func(l ld) { l.Reconnects = 9900 })
	// 0.1 % of 10,000 answers.
	check("", func(l ld) { l.Retried, l.Reconnects = 10, 10 })
	check("peak retried", func(l ld) { l.Retried, l.Reconnects = 11, 11 })
	check("", func(l ld) { l.Early = 10 })
	check("peak early", func(l ld) { l.Early = 11 })
	check("peak connections, peak early", func(l ld) { l.Early, l.Reconnects = 10000, 10000 })

	// Half of its time is enough, and 32 connections are some.
	using := func(share float64, change func(ld)) func(ld) {
		return func(l ld) {
			l.Service.CPUShare, l.Connections = share, 32
			change(l)
		}
	}
	nothing := func(ld) {}
	check("", using(0.5, nothing))
	check("peak unused", using(0.499, nothing))
	check("", using(-1, nothing)) // nobody looked
	check("", using(0.1, func(l ld) { l.Connections = 31 }))
	check("", using(0.1, func(l ld) { l.Model = record.Open }))
	check("", using(0.1, func(l ld) { l.Users = "700" }))
	check("", using(0.1, func(l ld) { l.Think = "constant 1s" }))
	check("", using(0.1, func(l ld) { // connections wait for the network
		l.Network = &record.Network{DelayNs: 5 * ms}
	}))
	check("", using(0.1, func(l ld) { l.Host.OtherCPUShare = 0.11 }))
	check("", using(0.1, func(l ld) { l.Host.StealShare = 0.11 }))
	check("", using(0.1, func(l ld) { l.Host.StealShare, l.Host.OtherCPUShare = 0.11, -1 }))
	check("", using(0.1, func(l ld) { l.Generator.CPUShare = 0.81 }))
	check("", using(0.1, func(l ld) { l.CeilingPerS = 1000 }))
	check("peak delayed ack", using(0.1, pieces(44*ms, 0))) // which is why
	check("", using(0.1, func(l ld) { l.Driver = "wrk" }))
	shares := func(with string, change func(*record.Record)) {
		t.Helper()
		r := healthy()
		using(0.45, nothing)(&r.Loads[1])
		change(r)
		if got := remarked(t, r); len(got) > 0 {
			t.Errorf("%q of one who may share its cores with %s", got, with)
		}
	}
	shares("the load", func(r *record.Record) { r.Limits.ServiceCores = []int{0} })
	shares("anybody", func(r *record.Record) { r.Limits.ServiceCores = nil })
}

// pieces returns responses that take 64 ms and have their first byte this much earlier.
func pieces(gap, spread int64) func(ld) {
	return func(l ld) {
		l.FirstByte = flat(10000, 64*ms-gap)
		l.ServiceTime.P90Ns, l.ServiceTime.P99Ns = 64*ms+spread, 64*ms+spread
		l.ServiceTime.P999Ns, l.ServiceTime.MaxNs = 64*ms+spread, 64*ms+spread
	}
}

// The kernel's own timer, triggered by a server that writes head and body separately; TCP_NODELAY,
// which Go sets, avoids it.
func TestDelayedAckProvoked(t *testing.T) {
	testsets.Once(t, "what a service gives rise to", testsets.Needs{})
	check := func(nodelay bool, want string) {
		t.Helper()
		testsets.Measured(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go inTwo(l, nodelay)
		r := offeredTo(t, netip.MustParseAddrPort(l.Addr().String()), load.Spec{Name: peak,
			Model: record.Closed, Connections: 8, Lead: time.Second, Window: time.Second})
		got, of := strings.Join(remarked(t, r), ", "), r.Loads[0]
		if got != want || of.Done == 0 {
			t.Errorf("TCP_NODELAY %v: remarks %q, want %q; %d answers, first byte %v, all %v",
				nodelay, got, want, of.Done, time.Duration(of.FirstByte.P50Ns),
				time.Duration(of.ServiceTime.P50Ns))
		}
	}
	check(false, "peak delayed ack")
	check(true, "")
}

// inTwo sends each response by two writes until the listener is closed.
func inTwo(l net.Listener, nodelay bool) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if err := c.(*net.TCPConn).SetNoDelay(nodelay); err != nil {
				return
			}
			for buf := make([]byte, 4096); ; {
				if _, err := c.Read(buf); err != nil {
					return
				}
				for _, part := range []string{head, "ok"} {
					if _, err := io.WriteString(c, part); err != nil {
						return
					}
				}
			}
		}()
	}
}
