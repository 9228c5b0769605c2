package wording

import (
	"fmt"
	"time"

	"prony.example/record"
)

// Findings of rules on the generator, on the offered load, and on the machine.

func stoodStill(f record.Finding) record.Words {
	return words("prony or its machine was stopped (Ctrl-Z, a paused VM): run it again",
		limitText(f, "less than "+time.Duration(f.Limit).String()), "%v",
		duration(f.Value, time.Millisecond))
}

func capacity(f record.Finding) record.Words {
	grows := fmt.Sprintf("%.1f/s", f.Value)
	return amount(words("above capacity, latency depends on the length of the test: lower the rate",
		fmt.Sprintf("%.1f/s", f.Limit), "backlog grows by %s", grows), grows)
}

func delivered(f record.Finding) record.Words {
	hint := "the generator was late: give it a quieter core"
	if f.Case == "waited" {
		hint = "all connections were busy: the service cannot keep up; lower the rate"
	}
	sent := share(f)
	return amount(words(hint, percent(f.Limit), "%s sent", sent), sent)
}

// withRoom adds the service's unused processor time if that bounds the finding.
func withRoom(f record.Finding, w record.Words) record.Words {
	if f.Case == "with room" {
		w.Observed += ", and the service had " + percent(f.Facts.UnusedShare) +
			" of its processor time left"
	}
	return amount(w, share(f))
}

func busy(f record.Finding) record.Words {
	return withRoom(f, words("the generator may be what was measured: give the load more cores",
		percent(f.Limit), "%s of a core", share(f)))
}

func ceiling(f record.Finding) record.Words {
	return withRoom(f, words("the service may be faster than this: give the load more cores",
		percent(f.Limit), "%s of the null server's", share(f)))
}

func runDelay(f record.Finding) record.Words {
	delay := percent(f.Value)
	return amount(words("something else ran on the load's cores", limitText(f, percent(f.Limit)),
		"%s of the window", delay), delay)
}

func steal(f record.Finding) record.Words {
	return amount(words("other virtual machines use the host: run again, or on another machine",
		percent(f.Limit), "%s stolen by the hypervisor", share(f)), share(f))
}

func throttled(f record.Finding) record.Words {
	return amount(words("its CPU quota stopped the service: give it whole cores", percent(f.Limit),
		"%s of the window", share(f)), share(f))
}

func neighbours(f record.Finding) record.Words {
	return words("stop other programs", "", "others used %s of the machine",
		percent(f.Value))
}

func memory(f record.Finding) record.Words {
	return words("memory is short: raise limits.memory, or free some", "",
		"%s of the window stalled on memory", percent(f.Value))
}

func lag(f record.Finding) record.Words {
	return words("other programs used the generator's core, or it is slow to wake: stop them", "",
		"p99 %v, at most %v", duration(f.Value, time.Microsecond),
		duration(f.Facts.MaxNs, time.Microsecond))
}

func timer(f record.Finding) record.Words {
	return words("its timer was as late before the load: use --pacing precise, or another machine",
		"", "p99 %v before the load", duration(f.Value, time.Microsecond))
}

func waited(f record.Finding) record.Words {
	return words("the tail includes waits for a connection: raise connections, or lower the rate",
		"",
		"%s of the arrivals found every connection busy", percent(f.Value))
}

func rate(f record.Finding) record.Words {
	return quantity(words("the generator was late: give it a quieter core", percent(f.Limit),
		"%d of %d left in the interval from %v on", f.Facts.Count, f.Facts.Total,
		time.Duration(f.Facts.AtNs)))
}

func arrivals(f record.Finding) record.Words {
	const hint = "the generator does not send at the planned intervals: use --pacing precise, " +
		"or a core of its own"
	if f.Case == "constant" {
		deviation := time.Duration(f.Value).String()
		return amount(words(hint, time.Duration(f.Limit).String(), "p99 of the gaps is off by %s",
			deviation), deviation)
	}
	a2 := apart(f.Value, f.Limit, 3)
	return amount(words(hint, fmt.Sprintf("%.3f", f.Limit), "A² = %s", a2), a2)
}

func bursts(f record.Finding) record.Words {
	hint := "the generator sends in bunches: give it a quieter core"
	if f.Case == "even" {
		hint = "the generator sends too evenly"
	}
	return words(hint, limitText(f, "1.00 of the mean"),
		"variance is %.2f of the mean in bins of %v", f.Value, time.Duration(f.Facts.BinNs))
}

func batch(f record.Finding) record.Words {
	const hint = "answers wait in the generator, so they look slower: give the load more cores"
	if f.Case == "mean" {
		mean := apart(f.Value, f.Limit, 1)
		return amount(words(hint, fmt.Sprintf("%.1f", f.Limit), "%s answers a turn", mean), mean)
	}
	most := fmt.Sprint(int64(f.Value))
	return amount(words(hint, fmt.Sprint(int64(f.Limit)), "a turn took %s of %d answers", most,
		f.Facts.Total), most)
}

func samples(f record.Finding) record.Words {
	n, limit := fmt.Sprint(int64(f.Value)), fmt.Sprint(int64(f.Limit))
	if f.Case == "in company" {
		return amount(words("slow answers are clustered, so p99 depends on few events: raise "+
			"measure", limit, "%d answers, worth %s independent ones", f.Facts.Count, n), n)
	}
	return amount(words("raise measure", limit, "%s answers", n), n)
}

const unsettled = "not in a steady state: raise warmup.max and measure"

func drift(f record.Finding) record.Words {
	if f.Case == "begins with none" {
		return words(unsettled, "", "no answer in the first half")
	}
	return words(unsettled, "", "got %s by %s", f.Case, percent(f.Value))
}

func settled(f record.Finding) record.Words {
	var a, b int64
	if t := f.Facts.TimesNs; len(t) == 2 {
		a, b = t[0], t[1]
	}
	return words(unsettled, "", "median %v in the first half, %v in the second",
		duration(a, time.Microsecond), duration(b, time.Microsecond))
}

func foreign(f record.Finding) record.Words {
	const hint = ": for latency use Prony's own generator"
	tool := f.Facts.Name
	switch f.Case {
	case "invented":
		return words("it assumes the mean latency as the time between requests"+hint,
			"measured samples only", "%s adds invented samples to its percentiles", tool)
	case "late start":
		return words("its clock starts when a request leaves, so waits before that are not "+
			"counted"+hint, "lag is measured", "%s does not say how late it sends", tool)
	}
	return words("its times include its own lateness"+hint, "lag is measured",
		"%s does not say how late it sends", tool)
}

func delayed(f record.Finding) record.Words {
	return words("a second write may wait for a delayed acknowledgement: write once, or set "+
		"TCP_NODELAY", "", "half of the answers have their end %v after their first byte",
		duration(f.Value, time.Millisecond/10))
}

func unused(f record.Finding) record.Words {
	return words(fmt.Sprintf("%d connections do not saturate it: it waits for something, or has "+
		"few threads", f.Facts.Connections), "", "the service used %s of its processor time",
		percent(f.Value))
}
