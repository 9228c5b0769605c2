package distributed

import (
	"testing"

	"prony.example/load"
)

// TestTornOrders checks that an order whose requests lack their other parts is refused.
func TestTornOrders(t *testing.T) {
	two := []load.Request{{Method: "GET", Path: "/a"}, {Method: "GET", Path: "/b"}}
	check := func(what string, scene sceneForm, want error) {
		t.Helper()
		f := orderForm{Spec: load.Spec{Name: "a"}, Scene: scene}
		if o, err := f.order(); err != want || o.Spec.Name != "a" {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("all parts", sceneForm{Scenario: load.Scenario{Requests: two},
		Requests: make([]looks, 2)}, nil)
	check("a request too many", sceneForm{Scenario: load.Scenario{Requests: two},
		Requests: make([]looks, 1)}, errGarbage)
	check("a part too many", sceneForm{Scenario: load.Scenario{Requests: two},
		Requests: make([]looks, 3)}, errGarbage)
	check("a step of the setup too many", sceneForm{Scenario: load.Scenario{
		Session: load.Session{Setup: two}}}, errGarbage)
}
