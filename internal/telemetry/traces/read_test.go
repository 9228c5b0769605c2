package traces

import "testing"

// A filter selects the traces that have all its fields, and leaves out those that differ in one.
func TestFilter(t *testing.T) {
	stored := &Trace{Trial: "b1", Target: "a", Window: "peak", TraceID: "0af7651916cd43dd",
		Classes: []string{"slow", "failed"}, DurationNs: 100,
		Spans: []Span{{Service: "shop"}, {Service: "stock"}}}
	all := Filter{Trial: "b1", Target: "a", Window: "peak", ID: "0AF7", Class: "failed",
		Service: "stock", Min: 100}
	for _, f := range []Filter{{}, all} {
		if !f.holds(stored) {
			t.Errorf("%+v leaves the trace out", f)
		}
	}
	for name, change := range map[string]func(f *Filter){
		"trial":    func(f *Filter) { f.Trial = "b2" },
		"target":   func(f *Filter) { f.Target = "b" },
		"window":   func(f *Filter) { f.Window = "half" },
		"ID":       func(f *Filter) { f.ID = "af7" },
		"class":    func(f *Filter) { f.Class = "typical" },
		"service":  func(f *Filter) { f.Service = "bank" },
		"duration": func(f *Filter) { f.Min = 101 },
	} {
		f := all
		if change(&f); f.holds(stored) {
			t.Errorf("another %s: the trace is selected", name)
		}
	}
}
