package runs

import (
	"reflect"
	"testing"
)

// TestChoices checks the values of filters, each once and in order, and that an empty folder has
// empty lists instead of none.
func TestChoices(t *testing.T) {
	dir := t.TempDir()
	got, err := open(t, dir, Options{}).Choices(t.Context())
	if err != nil || got.Suites == nil || got.Targets == nil || got.Labels == nil ||
		got.Machines == nil || len(got.Suites) > 0 {
		t.Errorf("without runs: %+v, %v", got, err)
	}
	run(t, dir, monday, "small")
	run(t, dir, "2026-11-24T21-23-22Z", "small")
	run(t, dir, "2026-11-25T21-23-22Z", "large")
	put(t, "{", dir, "2026-11-26T21-23-22Z", "run.json") // it cannot be read
	s := open(t, dir, Options{})
	got, err = s.Choices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Entry(monday)
	if err != nil {
		t.Fatal(err)
	}
	want := Choices{Suites: []string{"large", "small"}, Targets: []string{"go-nethttp",
		"node-express"}, Labels: []string{"branch=main"}, Machines: []Machine{e.Machine}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	page, err := s.Page(t.Context(), Filter{Suite: "large"}, "", 10)
	if err != nil || page.Total != 1 || page.All != 3 || len(page.Unreadable) != 1 {
		t.Errorf("%d of %d runs, %d unreadable, %v", page.Total, page.All, len(page.Unreadable),
			err)
	}
}
