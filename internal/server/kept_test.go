package server

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// stuck is the response to a client that reads nothing.
type stuck struct {
	*httptest.ResponseRecorder
	begun, end chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	close(s.begun)
	<-s.end
	return len(b), nil
}

// Clients that do not read their documents keep nobody from getting another one.
func TestSlowReaders(t *testing.T) {
	s := newSite(t, Options{})
	handler := s.Handler()
	request := func(path string) *http.Request {
		return httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/v1/"+path, nil)
	}
	end := make(chan struct{})
	var slow sync.WaitGroup
	for _, path := range []string{"runs/" + monday + "/report", "runs/" + monday + "/page"} {
		w := &stuck{httptest.NewRecorder(), make(chan struct{}), end}
		slow.Go(func() { handler.ServeHTTP(w, request(path)) })
		<-w.begun
	}
	answered := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request("trend?suite=canonical"))
		answered <- w.Code
	}()
	select {
	case code := <-answered:
		if code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	case <-time.After(2 * time.Minute):
		t.Errorf("no response while %d clients do not read", maxHeavy)
	}
	close(end)
	slow.Wait()
}
