package wording

import (
	"cmp"
	"fmt"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// Findings of rules on slices, and on all starts of a run together.

func sliceAnswers(f record.Finding) record.Words {
	if f.Case == "none" {
		return words("read the service's log", "at least 1", "no good response in the target's "+
			"slices")
	}
	observed := fmt.Sprintf("%d of about %d requests in slices failed", f.Facts.Count,
		f.Facts.Total)
	if f.Case == "many" {
		return quantity(words("errors do not count as responses; read the service's log",
			percent(f.Limit), "%s", observed))
	}
	return words("read the service's log", "none", "%s", observed)
}

func idleWork(f record.Finding) record.Words {
	if f.Case == "unknown" {
		return words("ratios of this target may be too good or too bad: run it on this machine, "+
			"where Prony can stop it while other targets are loaded",
			"known", "the target's CPU time while other "+
				"targets were loaded is unknown, and it was not stopped")
	}
	hint := "the target works without load, and was not stopped: look for timers, garbage " +
		"collectors and thread pools"
	if f.Facts.Subject != record.FreezeOff {
		hint = "the target was stopped " +
			"(" + f.Facts.Subject + "), so stopping and resuming it took this " +
			"CPU time: raise --slices"
	}
	return words(hint, "", "the target used %s of a core while other targets were loaded",
		percent(f.Value))
}

func idleTargets(f record.Finding) record.Words {
	hint := "the target works without load, and was not stopped: look for timers, garbage " +
		"collectors and thread pools"
	if f.Facts.Subject != record.FreezeOff {
		hint = "stopped targets run for a moment every 4 s: measure for less than 4 s, or each " +
			"target alone"
	}
	if f.Facts.Count > 1 {
		return words(hint, "", "other targets used %s of a core in the window, %s the most (%s)",
			percent(f.Value), f.Facts.Name, percent(f.Facts.Others))
	}
	return words(hint, "", "target %s used %s of a core in the window", f.Facts.Name,
		percent(f.Value))
}

func sliceGenerator(f record.Finding) record.Words {
	text := "the busiest load thread used %s of a core in slices"
	if f.Case == "ceiling" {
		text = "throughput in slices is %s of the generator's own against a no-op server"
	}
	return amount(words("the load generator may limit the result: give the load more cores",
		percent(f.Limit), text, share(f)), share(f))
}

func sliceLag(f record.Finding) record.Words {
	return words("late requests raise response times; the machine stalled, or other work ran on "+
		"the generator's core", "in time", "requests in open slices were sent late, which adds "+
		"up to %s to %s", units.Duration(f.Value), cmp.Or(f.Facts.Subject, "p99"))
}

func starts(f record.Finding) record.Words {
	w := words("read the target's log: a failure while slices run excludes the start for all "+
		"targets",
		percent(f.Limit),
		"%d of %s excluded, most because %s failed",
		f.Facts.Count, units.Plural(f.Facts.Total, "start"),
		f.Facts.Name)
	if f.Facts.Repeated > 0 {
		w.Observed += fmt.Sprintf(" (%d repeated)", f.Facts.Repeated)
	}
	if f.Side == "" {
		w.Limit = "none"
		return w
	}
	return quantity(w)
}

func control(f record.Finding) record.Words {
	return words("a difference up to this size may come from the measurement itself: look for a "+
		"cause that treats equal targets unequally, or measure more starts", "no difference",
		"the control %s differs by %s from itself in %s %s in this run", f.Facts.Name,
		units.Change(f.Facts.Observed), f.Load, metric.Named(f.Facts.Subject, "").Label)
}

func balance(f record.Finding) record.Words {
	return words("one target caused this difference, or chance did: measure on a machine with "+
		"less steal time",
		"the same for all targets", "the hypervisor took %s of a core more from slices of "+
			"one target than from those of another", percent(f.Value))
}

func rareEvents(f record.Finding) record.Words {
	w := words("rare events are part of the result: look for garbage collections, compactions "+
		"and timers", "none",
		"rare events: over all slices, %s differs in %s %s by %s from its typical slice",
		f.Facts.Name,
		f.Load, metric.Named(f.Facts.Subject, "").Label, units.Change(f.Facts.Observed))
	if f.Case == "few" {
		w.Hint = fmt.Sprintf("a start has %.1f rare events on average, so their cost is "+
			"uncertain: measure longer starts", f.Facts.Expected)
	}
	return w
}

func levels(f record.Finding) record.Words {
	return words("the lead-in may be too short, or the machine changed between slices and "+
		"windows: run more starts", "the same within their errors",
		"%s differs in %s %s by %s in slices, but by %s in windows", f.Facts.Name, f.Load,
		metric.Named(f.Facts.Subject, "").Label, units.Change(f.Facts.Expected),
		units.Change(f.Facts.Observed))
}
