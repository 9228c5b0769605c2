package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is a lab whose answers wait for an end.
type hanging struct {
	desk
	now, most *atomic.Int32
	end       chan struct{}
}

func (h hanging) wait(ctx context.Context) error {
	h.most.Store(max(h.most.Load(), h.now.Add(1)))
	defer h.now.Add(-1)
	select {
	case <-h.end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h hanging) Catalog(ctx context.Context) ([]Target, error) {
	return nil, h.wait(ctx)
}

func (h hanging) Plan(ctx context.Context, args []string) (Plan, error) {
	return Plan{}, h.wait(ctx)
}

func (h hanging) Host(ctx context.Context) (Host, error) {
	return Host{}, h.wait(ctx)
}

// Requests that start programs run a few at a time. If the check of the machine hangs, each request
// for it ends within a bound, and others are answered.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lab := hanging{now: new(atomic.Int32), most: new(atomic.Int32), end: make(chan struct{})}
		handler := New(Options{Lab: lab}).Handler()
		var all sync.WaitGroup
		ask := func(times int, path string) {
			for range times {
				all.Go(func() {
					handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet,
						"http://127.0.0.1/api/v1/"+path, nil))
				})
			}
		}
		ask(20, "catalog")
		synctest.Wait()
		if n := lab.now.Load(); n != maxHeavy {
			t.Errorf("%d catalogs are made, want %d", n, maxHeavy)
		}
		close(lab.end)
		all.Wait()
		lab.end = make(chan struct{})
		handler = New(Options{Lab: lab}).Handler()
		began := time.Now()
		ask(20, "host")
		all.Wait()
		if took := time.Since(began); took > lookBound || lab.most.Load() > maxHeavy {
			t.Errorf("requests for the host took %v, want %v; %d checks ran", took, lookBound,
				lab.most.Load())
		}
	})
}
