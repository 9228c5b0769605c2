package trial

import (
	"cmp"
	"time"

	"prony/internal/load"
	"prony/internal/pace"
	"prony/internal/result"
	"prony/internal/suite"
)

// model sets what the suite says of how a load is offered, but for its rate. The engine is a wish,
// which the driver fulfils.
func model(spec *load.Spec, l suite.Load) {
	spec.Churn, spec.Pacing, spec.Describe.Name = l.Churn, l.Pacing, l.Engine
	spec.Pacing = cmp.Or(spec.Pacing, load.Precise) // the load has cores of its own
	if spec.Model == result.Open {
		spec.Most = l.Most
	}
	spec.Slow = load.Slow{Clients: l.Slow.Clients, Text: string(l.Slow.Text),
		Drip: time.Duration(l.Slow.Drip)}
	if l.Users.IsZero() && l.Think == (suite.Think{}) {
		return
	}
	spec.Users = &load.Users{Number: pace.Flat(float64(l.Connections)), Think: load.Think{
		Kind: l.Think.Kind, Lo: time.Duration(l.Think.Lo), Hi: time.Duration(l.Think.Hi),
	}}
	if !l.Users.IsZero() {
		spec.Users.Number = l.Users.Profile
	}
}
