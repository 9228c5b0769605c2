package load

import (
	"slices"
	"testing"
	"time"

	"prony.example/record"
)

// logger notes the calls of an observer, by name.
type logger struct {
	name  string
	calls *[]string
	ends  bool // the load
}

func (l logger) Window(open bool) {
	*l.calls = append(*l.calls, l.name+map[bool]string{true: " opens", false: " closes"}[open])
}

func (l logger) Progress(Progress) bool {
	*l.calls = append(*l.calls, l.name+" reports")
	return !l.ends
}

// Several observers get each call in their order, also behind one that ends the load.
func TestObservers(t *testing.T) {
	var calls []string
	one, two := logger{"one", &calls, false}, logger{"two", &calls, false}
	all := Observers{nil, logger{"end", &calls, true}, Observers{one, nil, two}}
	all.Window(true)
	if all.Progress(Progress{}) {
		t.Error("a load goes on that one observer has ended")
	}
	if !all[2].Progress(Progress{}) || !(Observers{}).Progress(Progress{}) {
		t.Error("a load ends that no observer has ended")
	}
	all.Window(false)
	want := []string{"end opens", "one opens", "two opens", "end reports", "one reports",
		"two reports", "one reports", "two reports", "end closes", "one closes", "two closes"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

// An observer of a load without reports gets the ends of the window, and the threads record nothing
// twice. They do so only for an observer of full reports.
func TestReportsAreOptional(t *testing.T) {
	var calls []string
	all := logger{"x", &calls, true}
	w := &world{serve: after(time.Millisecond)}
	r := good(t, w, Spec{Model: record.Closed, Connections: 1, Observer: all, Detail: Full})
	if want := []string{"x opens", "x closes"}; !slices.Equal(calls, want) || r.WindowNs != 1e9 {
		t.Errorf("calls %q, want %q; a window of %d ns", calls, want, r.WindowNs)
	}
	for _, s := range []Spec{{Every: 1, Detail: Full}, {Observer: all, Detail: Pieces},
		{Observer: all, Every: 1}} {
		if s.repeats() {
			t.Errorf("threads record requests twice for detail %d every %v", s.Detail, s.Every)
		}
	}
	if s := (Spec{Observer: all, Every: 1, Detail: Pieces}); !s.repeats() {
		t.Error("threads record requests once for pieces")
	}
}

// Brief reports count the failures in the window's ended intervals so far. Of 20 requests in each
// interval of 100 ms, two fail and 18 have a response time.
func TestBriefFailures(t *testing.T) {
	w := &world{serve: func(c call) reply {
		if c.n%10 == 0 {
			return answer(time.Millisecond, "no")
		}
		return answer(time.Millisecond, "ok")
	}}
	reports, answers, failed := 0, int64(0), int64(0)
	good(t, w, Spec{Model: record.Open, Schedule: even(200), Connections: 4,
		Window: 3 * time.Second, Every: 300 * time.Millisecond,
		Observer: ProgressFunc(func(p Progress) bool {
			reports++
			answers, failed = answers+p.Answers, p.Failed
			if failed*9 != answers || p.Sent != 0 || p.Lag != nil || p.Piece != nil {
				t.Errorf("%d response times and %d failures after %+v", answers, failed, p)
			}
			return true
		})})
	if reports != 9 && reports != 10 || failed < 50 || failed > 60 {
		t.Errorf("%d reports with %d failures", reports, failed)
	}
}
