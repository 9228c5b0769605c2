package spanstore

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"prony/internal/telemetry"
	"prony/internal/telemetry/spans"
)

// Under is a trial under way as every store knows it; what a store has beside it lies around it.
type Under struct {
	telemetry.Trial
	Windows Windows
}

func (u *Under) under() *Under { return u }

// Roll are the trials under way, in the order of their beginning. T is a pointer to a struct that
// embeds Under; its zero value stands for no trial.
type Roll[T interface {
	comparable
	under() *Under
}] []T

// Find is the trial of that id.
func (r Roll[T]) Find(id string) (t T) {
	if i := slices.IndexFunc(r, func(t T) bool { return t.under().ID == id }); i >= 0 {
		return r[i]
	}
	return t
}

// Begin adds a trial.
func (r *Roll[T]) Begin(t T) error {
	var none T
	if id := t.under().ID; r.Find(id) != none {
		return fmt.Errorf("begin trial %s: it is under way already", id)
	}
	*r = append(*r, t)
	return nil
}

// Mark opens or closes a window of a trial.
func (r Roll[T]) Mark(m telemetry.Mark) error {
	var none T
	t := r.Find(m.Trial)
	if t == none {
		return fmt.Errorf("mark %s %s: trial %q is not under way", m.Kind, m.Name, m.Trial)
	}
	return t.under().Windows.Mark(m)
}

// Origin is the service that a resource describes, and its trial: the one that its attribute
// spans.TrialAttribute names, else the one that began last.
func (r Roll[T]) Origin(resource pcommon.Map) (service string, t T) {
	service = ServiceOf(resource)
	if v, ok := resource.Get(spans.TrialAttribute); ok {
		return service, r.Find(v.AsString())
	}
	if len(r) == 0 {
		return service, t
	}
	return service, r[len(r)-1]
}
