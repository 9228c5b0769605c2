package table

import (
	"cmp"

	"prony/internal/result"
)

// versus finds for every row the one that its ratios refer to: arm a for arm b of an A/A run, the
// same target bare for one that something rides along with, the same of another checkout for ours,
// else the baseline. It says what to call them together.
func (sc *Scenario) versus(o Options) {
	sc.Versus = ""
	for _, t := range sc.Targets {
		for _, k := range twins {
			twin := firstOf(sc.Targets, func(x *Target) bool { return k.of(t.Info, x.Info) })
			if twin == nil {
				continue
			}
			t.Reference = twin.Name
			called := cmp.Or(k.called, twin.Info.Origin)
			if sc.Versus != "" && sc.Versus != called {
				called = mixedTwins
			}
			sc.Versus = called
			break
		}
	}
	if sc.Versus != "" || sc.Target(o.Baseline) == nil || len(sc.Targets) < 2 {
		return
	}
	sc.Versus = o.Baseline
	for _, t := range sc.Targets {
		if t.Name != o.Baseline {
			t.Reference = o.Baseline
		}
	}
}

// mixedTwins is what references of several kinds are called together.
const mixedTwins = "its own"

// twins are the ways in which two rows may be of the same target, the closest first: whether b is
// the one that a refers to, and what to call it (empty: by its origin).
var twins = []struct {
	called string
	of     func(a, b result.Target) bool
}{
	{"itself", func(a, b result.Target) bool {
		arms := a.Arm == "b" && b.Arm == "a"
		b.Arm = a.Arm
		return arms && RowName(a) == RowName(b)
	}},
	{"bare", func(a, b result.Target) bool {
		bare := a.Variant != b.Variant && (b.Variant == "" || b.Variant == "none")
		b.Variant = a.Variant
		return bare && RowName(a) == RowName(b)
	}},
	{"process", func(a, b result.Target) bool {
		contained := a.Launcher != "" && b.Launcher == ""
		b.Launcher = a.Launcher
		return contained && RowName(a) == RowName(b)
	}},
	{"", func(a, b result.Target) bool {
		other := a.Origin == "" && b.Origin != ""
		a.Name += "@" + b.Origin
		return other && RowName(a) == RowName(b)
	}},
}

// ratioNote says what is over what.
func (sc *Scenario) ratioNote() []string {
	switch sc.Versus {
	case "":
		return nil
	case "itself":
		return []string{"Ratios are arm b over arm a of the same target, paired within blocks: " +
			"what is not 1 is noise."}
	case mixedTwins:
		return []string{"Ratios are target over the same target: arm a for arm b, else bare for " +
			"what rides along, else the plain process for a container, else the other " +
			"checkout's; paired within blocks."}
	case "process":
		return []string{"Ratios are target in a container over the same target as a plain " +
			"process, paired within blocks."}
	case "bare":
		return []string{"Ratios are target with what rides along over the same target bare, " +
			"paired within blocks."}
	}
	return []string{"Ratios are target over " + sc.Versus + ", paired within blocks."}
}
