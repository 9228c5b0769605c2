package wording

import (
	"fmt"
	"time"

	"prony.example/record"
)

// Findings of rules on the generator, on the offered load, and on the machine.

func stoodStill(f record.Finding) record.Words {
	return words("Prony or its machine was stopped (Ctrl-Z, or a paused VM): run the measurement "+
		"again",
		limitText(f, "less than "+time.Duration(f.Limit).String()), "%v",
		duration(f.Value, time.Millisecond))
}

func capacity(f record.Finding) record.Words {
	grows := fmt.Sprintf("%.1f/s", f.Value)
	return amount(words("above the capacity, latency depends on the length of the test: lower "+
		"the rate",
		fmt.Sprintf("%.1f/s", f.Limit), "the backlog of requests grows by %s", grows), grows)
}

func delivered(f record.Finding) record.Words {
	hint := "the generator sent requests late: run it on a core that other programs do not use"
	if f.Case == "waited" {
		hint = "all connections were busy because the service cannot keep up: lower the rate"
	}
	sent := share(f)
	return amount(words(hint, percent(f.Limit), "share of due requests sent: %s", sent), sent)
}

// withRoom adds the service's unused processor time if that bounds the finding.
func withRoom(f record.Finding, w record.Words) record.Words {
	if f.Case == "with room" {
		w.Observed += ", and the service left " + percent(f.Facts.UnusedShare) +
			" of its processor time unused"
	}
	return amount(w, share(f))
}

func busy(f record.Finding) record.Words {
	return withRoom(f, words("the load generator may limit the result: give the load more cores",
		percent(f.Limit), "the busiest load thread used %s of a core", share(f)))
}

func ceiling(f record.Finding) record.Words {
	return withRoom(f, words("the load generator may limit the throughput: give the load more "+
		"cores",
		percent(f.Limit), "throughput is %s of the generator's own against a no-op server",
		share(f)))
}

func runDelay(f record.Finding) record.Words {
	delay := percent(f.Value)
	return amount(words("other programs ran on the load's cores: stop them",
		limitText(f, percent(f.Limit)),
		"load threads waited for a core for %s of the window", delay), delay)
}

func steal(f record.Finding) record.Words {
	return amount(words("other virtual machines use the host: run again, or on another machine",
		percent(f.Limit), "the hypervisor took %s of the processor time", share(f)), share(f))
}

func throttled(f record.Finding) record.Words {
	return amount(words("the CPU quota stopped the service: give the service whole cores",
		percent(f.Limit),
		"the service was throttled for %s of the window", share(f)), share(f))
}

func neighbours(f record.Finding) record.Words {
	return words("stop other programs", "", "other programs used %s of the machine's processor "+
		"time",
		percent(f.Value))
}

func memory(f record.Finding) record.Words {
	return words("memory was short: raise limits.memory, or free memory on the machine", "",
		"tasks waited for memory for %s of the window", percent(f.Value))
}

func lag(f record.Finding) record.Words {
	return words("other programs used the generator's core, or the core woke up slowly: stop "+
		"other programs", "",
		"requests were sent late: p99 %v, at most %v", duration(f.Value, time.Microsecond),
		duration(f.Facts.MaxNs, time.Microsecond))
}

func delayedBy(f record.Finding) record.Words {
	return words("the generator had no time to add the delay on time: lower the rate, or give it "+
		"cores of its own with --cores", duration(f.Limit, time.Microsecond).String(),
		"the median delay that was added differs from the requested delay by %v",
		duration(f.Value, time.Microsecond))
}

func timer(f record.Finding) record.Words {
	return words("the generator's timer was as late before the load: use --pacing precise, or "+
		"another machine",
		"", "the timer was late by p99 %v before the load", duration(f.Value, time.Microsecond))
}

func waited(f record.Finding) record.Words {
	if f.Case == "streams" {
		return words("high percentiles include waits for a free stream: raise connections or the "+
			"server's limit of concurrent streams, or lower the rate",
			"",
			"%s of the arrivals found every stream busy that the server permits",
			percent(f.Value))
	}
	return words("high percentiles include waits for a free connection: raise connections, or "+
		"lower the rate",
		"",
		"%s of the arrivals found every connection busy", percent(f.Value))
}

func rate(f record.Finding) record.Words {
	return quantity(words("the generator sent requests late: run it on a core that other "+
		"programs do not use", percent(f.Limit),
		"%d of %d due requests were sent in the interval that begins at %v",
		f.Facts.Count, f.Facts.Total,
		time.Duration(f.Facts.AtNs)))
}

func arrivals(f record.Finding) record.Words {
	const hint = "the generator does not send at the planned intervals: use --pacing precise, or " +
		"give the generator a core of its own"
	if f.Case == "constant" {
		deviation := time.Duration(f.Value).String()
		return amount(words(hint, time.Duration(f.Limit).String(), "p99 of the gaps between "+
			"requests is off by %s",
			deviation), deviation)
	}
	a2 := apart(f.Value, f.Limit, 3)
	return amount(words(hint, fmt.Sprintf("%.3f", f.Limit), "A² = %s", a2), a2)
}

func bursts(f record.Finding) record.Words {
	hint := "the generator sends requests in bursts: run it on a core that other programs do not " +
		"use"
	if f.Case == "even" {
		hint = "the generator sends requests too evenly for Poisson arrivals"
	}
	return words(hint, limitText(f, "1.00 of the mean"),
		"the variance of request counts is %.2f of their mean in bins of %v",
		f.Value, time.Duration(f.Facts.BinNs))
}

func batch(f record.Finding) record.Words {
	const hint = "responses waited in the generator, so response times are too long: give the " +
		"load more cores"
	if f.Case == "mean" {
		mean := apart(f.Value, f.Limit, 1)
		return amount(words(hint, fmt.Sprintf("%.1f", f.Limit), "responses per turn of the event "+
			"loop: %s", mean), mean)
	}
	most := fmt.Sprint(int64(f.Value))
	return amount(words(hint, fmt.Sprint(int64(f.Limit)), "one turn of the event loop took %s of "+
		"%d responses", most,
		f.Facts.Total), most)
}

func samples(f record.Finding) record.Words {
	n, limit := fmt.Sprint(int64(f.Value)), fmt.Sprint(int64(f.Limit))
	if f.Case == "in company" {
		return amount(words("slow responses are clustered, so p99 depends on few events: use "+
			"longer windows", limit, "%d responses, equivalent to %s independent responses",
			f.Facts.Count, n), n)
	}
	return amount(words("use longer windows", limit, "%s responses", n), n)
}

const unsettled = "the service was not in a steady state: use a longer warm-up (--warmup) " +
	"and a longer window"

func drift(f record.Finding) record.Words {
	if f.Case == "begins with none" {
		return words(unsettled, "", "no response in the first half of the window")
	}
	return words(unsettled, "", "got %s by %s", f.Case, percent(f.Value))
}

func settled(f record.Finding) record.Words {
	var a, b int64
	if t := f.Facts.TimesNs; len(t) == 2 {
		a, b = t[0], t[1]
	}
	return words(unsettled, "", "median response time %v in the first half of the window, %v in "+
		"the second half",
		duration(a, time.Microsecond), duration(b, time.Microsecond))
}

func foreign(f record.Finding) record.Words {
	const hint = ": for latency use Prony's own generator"
	tool := f.Facts.Name
	switch f.Case {
	case "invented":
		return words("the tool takes the mean latency as the interval between requests"+hint,
			"measured samples only", "%s adds invented samples to its percentiles", tool)
	case "late start":
		return words("the tool measures from the moment it sends a request, so earlier waits are "+
			"not counted"+hint, "the send delay is reported",
			"%s does not report how late it sends requests",
			tool)
	}
	return words("the tool's response times include its own send "+
		"delay"+hint, "the send delay is reported",
		"%s does not report how late it sends requests", tool)
}

func delayed(f record.Finding) record.Words {
	return words("a second write may wait for a delayed acknowledgement: write once, or set "+
		"TCP_NODELAY", "", "half of the responses end %v or more after their first byte",
		duration(f.Value, time.Millisecond/10))
}

func unused(f record.Finding) record.Words {
	return words(fmt.Sprintf("%d connections do not saturate the service: it waits for something "+
		"else, or has too few threads",
		f.Facts.Connections), "", "the service used %s of its processor time",
		percent(f.Value))
}
