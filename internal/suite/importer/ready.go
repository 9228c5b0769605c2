package importer

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"prony.example/load/template"
)

var (
	healthy = regexp.MustCompile(`(?i)/(health|healthz|health-?check|ready|readyz|readiness|live|` +
		`livez|liveness|alive|ping|heartbeat|status)/?$`)
	failing = regexp.MustCompile(`(?i)\b(fail(s|ing)?|errors?|oops|crash|panic|deprecated)\b`)
)

// ready is the path that is to answer 200 once the service serves, if the first GET is not as good:
// one of health, else one without parameters, and none that is there to fail. It is - for the first
// connection, if no GET answers 200, and "" for the first GET.
func (d *Draft) ready() string {
	var all []Request
	for _, r := range d.Requests {
		if r.Method == http.MethodGet && r.constant() {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return ""
	}
	best := slices.MinFunc(all, func(a, b Request) int { return a.unfit() - b.unfit() })
	switch {
	case best.unfit() == neverReady:
		return "-"
	case best.Path == all[0].Path && all[0].unfit() == best.unfit():
		return ""
	}
	return best.Path
}

// neverReady is of a request that is not answered with 200.
const neverReady = 4

// unfit orders requests by how little they say that a service is ready.
func (r *Request) unfit() int {
	path, _, query := strings.Cut(r.Path, "?")
	switch {
	case r.Status != http.StatusOK:
		return neverReady
	case failing.MatchString(r.Note) || failing.MatchString(path):
		return 3
	case healthy.MatchString(path):
		return 0
	case query || len(r.Headers) > 0 || r.Body != "":
		return 2
	}
	return 1
}

// constant says whether a request is the same each time and everywhere.
func (r *Request) constant() bool {
	texts := []string{r.Path, r.Body}
	for _, f := range r.Headers {
		texts = append(texts, f.Value)
	}
	return !slices.ContainsFunc(texts, func(text string) bool {
		t, err := template.Parse(text, nil)
		return err != nil || !t.Constant() || len(t.Environment()) > 0
	})
}
