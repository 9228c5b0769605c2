package distributed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// tape holds a generator's messages for repetition: a thousand tapes are cheap, a thousand load
// threads would fill a machine.
type tape struct {
	pieces [][]byte // one per second
	books  []byte
}

// recorded returns the tape of a part.
func recorded(t *testing.T, o Order, part load.Part) (out tape) {
	t.Helper()
	o.Spec.Part = part
	o.Spec.Detail, o.Spec.Observer = load.Pieces, load.ProgressFunc(func(p load.Progress) bool {
		out.pieces = append(out.pieces, p.Piece)
		return true
	})
	out.books = alone(t, o).Ledger.Books()
	return out
}

// fate is a fault of a generator.
type fate int

const (
	isWell fate = iota
	isLost      // its connection ends midway
	isLate      // it starts a second late
)

// fateOf returns the fault of a generator; of many, some are lost and some late.
func fateOf(index int) fate {
	return map[int]fate{7: isLost, 9: isLate}[index%50]
}

// tell plays a tape as a generator.
func (x *tape) tell(conn net.Conn, token string, index int, f fate) error {
	c := &line{Conn: conn}
	defer c.Close() //nolint:errcheck // all was said
	if err := c.tell(hello, helloForm{"v1", token, index, fmt.Sprint("g", index)}); err != nil {
		return err
	}
	if _, _, err := c.hear(time.Hour, welcome); err != nil {
		return err
	}
	if _, _, err := c.hear(time.Hour, order); err != nil {
		return err
	}
	if err := c.tell(ready, readyForm{load.EngineInfo{Name: "made up"}}); err != nil {
		return err
	}
	at, err := c.answer(start)
	if err != nil {
		return err
	}
	end := endedForm{}
	if f == isLate {
		end.LateNs = int64(time.Second)
	}
	for i, b := range x.pieces {
		if i == len(x.pieces)/2 && f == isLost {
			return nil
		}
		// At different times within a second, like processes that start independently.
		due := at.At + end.LateNs + int64(time.Second)*int64(i) + int64(index%1000)*1e6
		time.Sleep(time.Duration(due - clock.Mono()))
		if err := c.send(piece, b); err != nil {
			return err
		}
	}
	if err := c.tell(ended, end); err != nil {
		return err
	}
	if _, err := c.answer(word); err != nil {
		return err
	}
	if err := c.send(books, x.books); err != nil {
		return err
	}
	_, _, err = c.hear(time.Hour, thanks)
	return err
}

// answer answers clock requests until another message arrives, which may be the start.
func (c *line) answer(until byte) (at startForm, err error) {
	for {
		kind, body, err := c.hear(time.Hour, ask, until)
		switch {
		case err != nil:
			return at, err
		case kind == start:
			return at, read(body, &at)
		case kind == until:
			return at, nil
		}
		if err := c.tell(told, clockForm{clock.Mono(), clock.Wall().UnixNano()}); err != nil {
			return at, err
		}
	}
}

// manyOf returns a load with small parts and enough connections to avoid waits.
func manyOf(n int, window time.Duration, perS float64) Order {
	o := scored(perS * float64(n))
	o.Spec.Connections, o.Spec.Window = 8*n, window
	return o
}

// remains returns the number of the window's requests without faulty generators.
func remains(t *testing.T, o Order, n int) (due int64) {
	t.Helper()
	for i := range n {
		if fateOf(i) == isLost {
			continue
		}
		p, err := o.Spec.Schedule.Process(o.Spec.Seed)
		if err != nil {
			t.Fatal(err)
		}
		lead := int64(o.Spec.Lead)
		due += pace.Count(pace.Share(p, i, n), lead, lead+int64(o.Spec.Window))
	}
	return due
}

// checkFates checks that lost and late generators are named, no others, and that the others'
// numbers are in the result.
func checkFates(t *testing.T, o Order, n int, res *record.Load) {
	t.Helper()
	want := map[fate]string{isLost: "disconnected ", isLate: "began 1s late"}
	for i, g := range res.Generators {
		if w := want[fateOf(i)]; !strings.HasPrefix(g.Fault, w) || w == "" && g.Fault != "" {
			t.Errorf("generator %d has the fault %q, want %q", i, g.Fault, w)
		}
	}
	if due := remains(t, o, n); res.Answered != due || res.Scheduled <= due {
		t.Errorf("%d of %d answered; those who were not lost had %d", res.Answered, res.Scheduled,
			due)
	}
	grade, observed := finding(judged(&load.Result{Load: *res}), "generators")
	if grade != record.Invalid || !strings.Contains(observed, "generator 7 (g7) disconnected") {
		t.Errorf("%s: %s", grade, observed)
	}
}

// TestMany checks that tapes add up to one process's result, without the parts of lost and late
// generators.
func TestMany(t *testing.T) {
	testsets.Whole(t, "many generators")
	const n = 100
	o := manyOf(n, 2*time.Second, 10)
	one := alone(t, o)
	var tapes [n]tape
	for i := range tapes {
		tapes[i] = recorded(t, o, load.Part{Index: i, Of: n})
	}
	for _, some := range []bool{false, true} {
		inBubble(t, n, func(s *stage) {
			clear(s.all)
			for i := range tapes {
				f := isWell
				if some {
					f = fateOf(i)
				}
				go func() {
					if err := tapes[i].tell(s.hall.enter(), token, i, f); err != nil {
						t.Errorf("generator %d: %v", i, err)
					}
				}()
			}
			res, err := s.offer(o)
			switch {
			case err != nil:
				t.Error(err)
			case some:
				checkFates(t, o, n, &res.Load)
			default:
				equalBins(t, "tapes", res, one)
			}
		})
	}
}

// playing is the variable that makes this test binary play the generators; its value is the lab's
// address.
const playing = "PRONY_TEST_PLAYING"

// TestThousand runs a thousand generators in a separate process, which report to one lab every
// second, and logs the lab's cost. Faults are tested in virtual time (TestMany).
func TestThousand(t *testing.T) {
	const n = 1000
	o := manyOf(n, 10*time.Second, 20)
	if _, err := load.RaiseFiles(); err != nil {
		t.Fatal(err)
	}
	if at := os.Getenv(playing); at != "" {
		play(t, o, n, at)
		return
	}
	testsets.Long(t, "a lab of a thousand generators", testsets.Needs{})
	lab, err := Listen("127.0.0.1:0", n, "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close() //nolint:errcheck // the test is over
	lab.Limits.Gather = 10 * time.Minute
	players := exec.Command(os.Args[0], "-test.run=TestThousand$", "-test.v")
	players.Env = append(os.Environ(), playing+"="+lab.Addr())
	players.Stdin = strings.NewReader(lab.Key().String() + "\n")
	players.Stdout, players.Stderr = os.Stderr, os.Stderr
	if err := players.Start(); err != nil {
		t.Fatal(err)
	}
	defer players.Process.Kill() //nolint:errcheck // it has ended, or the test has failed
	all := offered(t, lab, o)
	if err := players.Wait(); err != nil {
		t.Errorf("the generators: %v", err)
	}
	one := alone(t, o)
	equalBins(t, "a thousand", all, one)
	if all.Answered != one.Answered || all.TraceHash != one.TraceHash {
		t.Errorf("%d answered, hash %s; one process %d, %s", all.Answered, all.TraceHash,
			one.Answered, one.TraceHash)
	}
	for _, g := range all.Generators {
		if g.LateNs > 0 || g.Sent == 0 {
			t.Errorf("%s began %d ns late by its own word and sent %d", who(g.Index, g.Name),
				g.LateNs, g.Sent)
		}
	}
}

// memoryMost limits the memory of the test's process, most of which is the lab's.
const memoryMost = 1 << 30

// offered runs the load with a lab's generators and logs the cost.
func offered(t *testing.T, l *Lab, o Order) *load.Result {
	t.Helper()
	<-l.come // the tapes are ready before
	before, began := used(t), clock.Mono()
	pieces := 0
	o.Spec.Observer = load.ProgressFunc(func(load.Progress) bool { pieces++; return true })
	res, err := l.Offer(t.Context(), o)
	after, ended := used(t), clock.Mono()
	if err != nil {
		t.Fatal(err)
	}
	s := &o.Spec
	last := time.Duration(ended-res.FromNs) - s.Window
	t.Logf("%v in all, the last word %v after the window, %v of CPU, %d MiB, %d looks, clocks "+
		"within %v", time.Duration(ended-began).Round(time.Millisecond),
		last.Round(time.Millisecond), (after.cpu - before.cpu).Round(time.Millisecond),
		after.memory>>20, pieces, time.Duration(clocksWithin(res)))
	if after.memory > memoryMost {
		t.Errorf("the process took %d MiB", after.memory>>20)
	}
	return res
}

// clocksWithin returns the largest error of a clock.
func clocksWithin(res *load.Result) (most int64) {
	for _, g := range res.Generators {
		most = max(most, g.Clock.ErrorNs, g.Clock.DriftErrorNs)
	}
	return most
}

// usage is this process's use of resources so far.
type usage struct {
	cpu    time.Duration
	memory int64 // maximum
}

func used(t *testing.T) usage {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), r.Maxrss << 10}
}

// play runs the process of generators.
func play(t *testing.T, o Order, n int, at string) {
	t.Helper()
	tapes, size := make([]tape, n), 0
	for i := range tapes {
		tapes[i] = recorded(t, o, load.Part{Index: i, Of: n})
		for _, b := range append(tapes[i].pieces, tapes[i].books) {
			size += len(b)
		}
	}
	t.Logf("%d generators tell %d KiB, in %d pieces each", n, size>>10, len(tapes[0].pieces))
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var group sync.WaitGroup
	for k := range tapes {
		group.Go(func() {
			conn, err := dial(t.Context(), at, key)
			if err == nil {
				err = tapes[k].tell(conn, key.Token, k, isWell)
			}
			errs[k] = err
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
