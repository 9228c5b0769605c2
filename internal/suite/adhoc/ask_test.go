package adhoc

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/suite"
)

// A field that counts seconds is found to vary, although the service is asked within a second. A
// response without a number is not waited for.
func TestAskSeesSecondsPass(t *testing.T) {
	testsets.Whole(t, "it waits for a second")
	began := time.Now()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/health" {
			fmt.Fprintf(w, `{"status":"ok","uptime":%d}`, int(time.Since(began).Seconds()))
		} else {
			fmt.Fprint(w, "ok")
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{"/": "", "/health": "uptime"} {
		requests := []suite.Request{{Request: "GET " + path}}
		asked := time.Now()
		answers, err := Ask(t.Context(), nil, strings.TrimPrefix(s.URL, "http://"), requests)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(asked) >= askSpan; waited != (want != "") {
			t.Errorf("%s: waited %v", path, waited)
		}
		held, err := Hold(requests, []string{"a"}, [][][]Answer{answers}, false, os.LookupEnv)
		if err != nil || !strings.HasSuffix(held[0].Says, want) ||
			want != "" && len(held[0].Request.Checks) != 1 {
			t.Errorf("%s: %+v, error %v", path, held, err)
		}
	}
}
