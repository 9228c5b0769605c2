package table

import "slices"

// versus finds for every row the one that its ratios refer to: arm a for arm b of an A/A run, the
// same target bare for one that something rides along with, the same of another checkout for ours,
// else the baseline. It says what to call them together.
func (sc *Scenario) versus(o Options) {
	sc.Versus = ""
	for i := range sc.Targets {
		t := &sc.Targets[i]
		if at := slices.IndexFunc(sc.Targets, func(x Target) bool { return twin(t, &x) }); at >= 0 {
			t.Reference = sc.Targets[at].Name
			sc.Versus = called(&sc.Targets[at])
		}
	}
	base := slices.IndexFunc(sc.Targets, func(t Target) bool { return t.Name == o.Baseline })
	if sc.Versus != "" || o.Baseline == "" || base < 0 || len(sc.Targets) < 2 {
		return
	}
	sc.Versus = o.Baseline
	for i := range sc.Targets {
		if i != base {
			sc.Targets[i].Reference = o.Baseline
		}
	}
}

// twin tells whether of is the same target as t and the one of the two to refer to.
func twin(t, of *Target) bool {
	a, b := t.Info, of.Info
	switch {
	case a.Arm == "b" && b.Arm == "a":
		b.Arm = a.Arm
		return RowName(a) == RowName(b)
	case a.Variant != b.Variant && (b.Variant == "" || b.Variant == "none"):
		b.Variant = a.Variant
		return RowName(a) == RowName(b)
	case a.Origin == "" && b.Origin != "":
		a.Name += "@" + b.Origin
		return RowName(a) == RowName(b)
	}
	return false
}

func called(reference *Target) string {
	switch {
	case reference.Info.Arm != "":
		return "itself"
	case reference.Info.Origin != "":
		return reference.Info.Origin
	}
	return "bare"
}

// ratioNote says what is over what.
func (sc *Scenario) ratioNote() []string {
	switch sc.Versus {
	case "":
		return nil
	case "itself":
		return []string{"Ratios are arm b over arm a of the same target, paired within blocks: " +
			"what is not 1 is noise."}
	case "bare":
		return []string{"Ratios are target with what rides along over the same target bare, " +
			"paired within blocks."}
	}
	return []string{"Ratios are target over " + sc.Versus + ", paired within blocks."}
}
