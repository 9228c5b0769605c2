package trial_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/trial"
	"prony.example/record"
)

// A service that is not ready is reported after 15 s, with what is waited for and how long, then
// each minute; one that is ready earlier is not.
func TestServiceThatIsNotReady(t *testing.T) {
	for _, row := range []struct {
		late time.Duration
		want []time.Duration
	}{
		{14 * time.Second, nil},
		{100 * time.Second, []time.Duration{15 * time.Second, 75 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			began := time.Now()
			w.lab.Dial = func(ctx context.Context, network, at string) (net.Conn, error) {
				if time.Since(began) < row.late {
					return nil, errors.New("refused")
				}
				return w.launcher.Dial(ctx, network, at)
			}
			var said []string
			var at []time.Duration
			w.lab.Observe = func(e trial.Event) {
				if e.Remark != "" {
					said, at = append(said, e.Remark), append(at, time.Since(began))
				}
			}
			records, err := w.run(context.Background(), w.experiment("a"))
			if err != nil || records[0].Outcome != record.Measured {
				t.Fatalf("%+v, %v", records, err)
			}
			if !slices.Equal(at, row.want) {
				t.Fatalf("reported after %v, want %v", at, row.want)
			}
			for i, text := range said {
				for _, part := range []string{"a is not ready after " + row.want[i].String(),
					"at most 4m0s until GET /", "returns status 200; its log is ", "Ctrl-C"} {
					if !strings.Contains(text, part) {
						t.Errorf("said %q, want %q in it", text, part)
					}
				}
			}
		})
	}
}
