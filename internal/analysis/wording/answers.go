package wording

import (
	"fmt"
	"strings"
	"time"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Findings of rules on responses, and on several generators of one load.

func answers(f record.Finding) record.Words {
	hint := "no response arrived in the window: use a longer window, or read the service's log"
	if text := first(f.Facts.Messages); text != "" {
		hint = "see the errors: " + text
	}
	return words(hint, "at least 1", "no good response")
}

func sums(f record.Finding) record.Words {
	const ours = "this is a defect of Prony: please report it"
	switch f.Case {
	case "ends":
		return words(ours, "as many", "%d more requests ended than were sent", f.Facts.Count)
	case "times":
		return words(ours, "as many", "%d response times were recorded for %d responses and "+
			"timeouts",
			f.Facts.Count, f.Facts.Total)
	}
	return quantity(words("the tool's percentiles do not cover all requests that it sent",
		percent(f.Limit), "%d response times were recorded for %d responses",
		f.Facts.Count, f.Facts.Total))
}

func order(f record.Finding) record.Words {
	return words("this is a defect of "+f.Facts.Name+": please report it", "increasing",
		"minimum, percentiles and maximum %v ns, mean %.0f ns", f.Facts.TimesNs, f.Facts.MeanNs)
}

func identities(f record.Finding) record.Words {
	return words("this is a defect of Prony, or of the tool that offered the load: please report "+
		"it", "", "the numbers contradict each other: %s", first(f.Facts.Messages))
}

func failures(f record.Finding) record.Words {
	observed := fmt.Sprintf("%d of %d requests failed", f.Facts.Count, f.Facts.Total)
	if text := first(f.Facts.Messages); text != "" {
		observed += " (" + text + ")"
	}
	hint := "read the service's log"
	switch {
	case f.Facts.Party == record.PartyMachine:
		hint = "this machine caused the first error, not the service: follow the hint of this error"
	case f.Facts.Party == record.PartyOptions:
		hint = "the service did not cause the first error: change the options as its text advises"
	case 2*f.Facts.Closed > f.Facts.Count:
		hint = "raise the service's limits on connections (requests, idle time), or, over " +
			"HTTP/1.1, use an idempotent method such as GET"
	}
	if f.Case == "many" {
		return quantity(words("errors do not count as "+
			"responses; "+hint, percent(f.Limit), "%s", observed))
	}
	return words(hint, "none", "%s", observed)
}

func retried(f record.Finding) record.Words {
	return words("the service closed kept-alive connections before it read these requests, or it "+
		"failed without a response: check its keep-alive limits and its log", "",
		"%d of %d requests were sent again", f.Facts.Count, f.Facts.Total)
}

func early(f record.Finding) record.Words {
	return words("the service responds before it has received the whole request: its times do "+
		"not include the upload", "",
		"%d of %d answers came before their requests were sent", f.Facts.Count, f.Facts.Total)
}

func censored(f record.Finding) record.Words {
	w := words("requests without a response are missing from the percentiles: raise drain, or "+
		"lower the rate",
		"none", "%d of %d requests had no response at the end", f.Facts.Count, f.Facts.Total)
	if f.Limit > 0 {
		w.Limit = percent(f.Limit)
		return quantity(w)
	}
	return w
}

func little(f record.Finding) record.Words {
	return quantity(words("requests from before the window still had no response: connections "+
		"starve, or the window is too short",
		percent(f.Limit), "%.2f requests were under way on average, "+
			"but rate × mean service time gives %.2f",
		f.Facts.Observed, f.Facts.Expected))
}

func starving(f record.Finding) record.Words {
	return quantity(words("connections starve, or the window is too short: percentiles lack the "+
		"responses that took longest (raise --measure)",
		percent(f.Limit), "requests from before the window were %s of those under way in it",
		percent(f.Value)))
}

func clipped(f record.Finding) record.Words {
	limit := duration(f.Limit, time.Second).String()
	return amount(words("response times above the limit are recorded as the limit: set a timeout "+
		"below it", limit,
		"at least one request took %s or longer", limit), limit)
}

func connections(f record.Finding) record.Words {
	w := words("the service closes connections, so response times include handshakes", "",
		"%d new connections for %d requests", f.Facts.Count, f.Facts.Total)
	switch f.Case {
	case "given up":
		w.Hint = "Prony gave up connections after early responses or unexpected bytes, so " +
			"response times include handshakes"
	case "none kept":
		w.Hint = "the service keeps no connection alive, so each request includes a new connection"
	}
	return w
}

func datagrams(f record.Finding) record.Words {
	w := words("raise net.core.rmem_max for service and load, or run them on separate cores",
		"", "%d datagrams were lost for %d responses", f.Facts.Count, f.Facts.Total)
	if f.Case == "under way" {
		w.Observed += fmt.Sprintf(" of %.0f datagrams each", f.Facts.Observed)
		w.Limit = fmt.Sprintf("%.0f under way", f.Limit)
	}
	return w
}

func unasked(f record.Finding) record.Words {
	facts := f.Facts
	const nobody = "it is unknown whether the service calls its backend"
	const alone = "let no other program use the backend during the measurement"
	switch f.Case {
	case "not read":
		return words(nobody, "", "the call counter of %s cannot be read: %s",
			facts.Name, first(facts.Messages))
	case "late":
		return words(
			"use a longer window: "+nobody,
			"",
			"the call counter of %s counts %s up to %v late",
			facts.Name,
			facts.Subject,
			time.Duration(f.Value),
		)
	case "others":
		return words(alone, "", "%s: other clients also call it, with %.0f %s per second before "+
			"the load",
			facts.Name, f.Value, facts.Subject)
	}
	perItem := apart(f.Value, f.Limit, 2)
	w := words("the service may respond from a cache: configure it to call its backend, or lower "+
		"backendCalls", apart(f.Limit, f.Value, 2), "%s: %s %s per response",
		facts.Name, perItem, facts.Subject)
	if f.Case == "shared" {
		w.Observed += fmt.Sprintf("; other clients may have made %.0f %% of them", 100*facts.Others)
		w.Hint = alone
	}
	return amount(w, perItem)
}

// namesMax bounds how many generators a finding names.
const namesMax = 3

// called names a generator in a text.
func called(index int, name string) string {
	return fmt.Sprintf("generator %d (%s)", index, name)
}

func generators(f record.Finding) record.Words {
	hint := "a generator did not send its part of the schedule as planned: read that generator's " +
		"log"
	var texts []string
	for _, p := range f.Facts.Parts {
		text := called(p.Generator, p.Name)
		if p.Fault != "" {
			texts = append(texts, text+" "+p.Fault)
			continue
		}
		w := Finding(p.Finding())
		hint = w.Hint
		texts = append(texts, text+": "+p.Rule+": "+w.Observed)
	}
	return words(hint, fmt.Sprintf("all %d generators without findings", f.Facts.Total), "%s",
		strings.Join(units.First(texts, namesMax), "; "))
}

func clocks(f record.Finding) record.Words {
	name, limit := called(f.Facts.Generator, f.Facts.Name), time.Duration(f.Limit).String()
	if f.Case == "wall" {
		return quantity(words("results are not affected, but timestamps in this generator's log "+
			"are wrong", limit,
			"%s: its wall clock is %v off", name, duration(f.Facts.DriftNs, time.Millisecond)))
	}
	deviation := duration(f.Value, time.Microsecond).String()
	return amount(words("this generator did not send its part of the schedule on time: "+
		"synchronize both machines' clocks with one time server, and use a quieter network", limit,
		"%s: its clock is up to %s off, and drifted by %v", name, deviation,
		duration(f.Facts.DriftNs, time.Microsecond)), deviation)
}
