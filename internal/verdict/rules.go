package verdict

import (
	"slices"
)

// ended stands before the others: what a trial that failed has measured is not looked at.
var ended = Rule{"failed", "every step of the trial went well", "INVALID",
	"docs/formats/record.md", failed}

var trialRules = []Rule{
	{"warm-up", "a steady state was reached before the first window, and " +
		"the closed one is part of it", "SUSPECT",
		"HttpArena #1417, spring-quarkus-perf-comparison #633", warmup},
	{"quiet", "nothing else used the machine in the moments before the trial, or it was quiet " +
		"again soon", "SUSPECT", "postrust #11; bencher noise", quiet},
	{"limits", "every limit asked for is in force", "SUSPECT",
		"kubernetes #67577; docs/decisions/0005-launching.md", limits},
	{"cores", "service and load run on cores of their own", "SUSPECT",
		"postrust #11; Treadmill, ISCA 2016", cores},
}

// boundRules are about what must hold before a load has a latency at all. Where one of them makes
// it INVALID, printers withhold the latency (see Withheld). Capacity comes before delivered: where
// both object it knows why.
var boundRules = []Rule{
	{"answers", "there are good answers", "INVALID", "wrk #457", answers},
	{"sums", "each answer and each timeout is in the response times once, and nothing else is; " +
		"of a foreign tool, within 1 %", "INVALID, of a foreign tool SUSPECT",
		"wrk #485; hey #112, #227", sums},
	{"order", "percentiles do not decrease and lie between minimum and maximum", "INVALID",
		"locust #331, #777", order},
	{"capacity", "the backlog grows by less than 1 % of the rate, beside randomness and what a " +
		"change of rate explains", "INVALID", "wrk2 #81, #94", capacity},
	{"delivered", "99 % of the arrivals due in the window, or all but five, were sent in it",
		"INVALID", "Lancet, ATC 2019; HttpArena #1317", delivered},
}

var loadRules = []Rule{
	{"generator", "each load thread is busy for less than 80 % of the window, polling aside",
		"SUSPECT", "FrameworkBenchmarks #5207; Hyperfoil's watchdog", generator},
	{"run delay", "load threads wait for a processor for less than 5 % of the window", "SUSPECT",
		"Linux, Documentation/scheduler/sched-stats.rst", runDelay},
	{"ceiling", "throughput is below 70 % of the generator's against a null server", "SUSPECT",
		"the-benchmarker #9662, #9775", ceiling},
	{"little", "requests under way equal rate times mean service time within 5 %",
		"SUSPECT, beyond 20 % INVALID", "Little, Operations Research 9(3), 1961", little},
	{"errors", "every answer has the right status and body", "SUSPECT, above 0.1 % INVALID",
		"HttpArena #939", failures},
	{"censored", "every request was answered by the end of the drain",
		"SUSPECT, above 1 % INVALID", "Tene, How NOT to Measure Latency", censored},
	{"range", "no time is longer than the 18 minutes that histograms reach to", "SUSPECT",
		"HdrHistogram; gcannon's 5 s, JMeter's window of 20,000", clipped},
	{"connections", "fewer than 1 % of the requests cost a new connection, asked-for ones aside",
		"SUSPECT", "the-benchmarker #9421", reconnects},
	{"slow clients", "every slow client that was asked for was connected", "SUSPECT",
		"wrk #509, #261", slow},
	{"drift", "the two halves of a closed window of a steady load differ by less than 5 % in " +
		"throughput, randomness aside", "SUSPECT", "Kalibera & Jones, ISMM 2013", drift},
	{"steal", "the hypervisor took less than 1 % of the processors' time",
		"SUSPECT, above 10 % INVALID", "proc(5), /proc/stat; bencher noise", steal},
	{"throttled", "the service was throttled for less than 1 % of the window", "SUSPECT",
		"kubernetes #67577", throttled},
	{"neighbours", "other processes used less than 5 % of the processors' time", "SUSPECT",
		"postrust #11", neighbours},
	{"memory", "tasks stalled on memory for less than 1 % of the window", "SUSPECT",
		"Linux, Documentation/accounting/psi.rst", memory},
}

// latencyRules are about response times alone. Where there are none that count, what may be wrong
// with them is of no interest: it follows from what is INVALID already.
var latencyRules = []Rule{
	{"lag", "p99 of the generator's own lag is below 50 µs or 5 % of the response time's p99",
		"SUSPECT", "Treadmill, ISCA 2016; wrk2 #78", lag},
	{"timer", "where lag is too large, p99 of the timer's lateness before the load was not",
		"SUSPECT", "nighthawk #204; cql-stress #134, #140; Hyperfoil #342", timer},
	{"waited", "fewer than 1 % of the arrivals, or at most five, found every connection busy",
		"SUSPECT", "k6-docs #974; vegeta #344", waited},
	{"rate", "99 % of each second's arrivals, or all but five, left in it, but for those that " +
		"waited for a connection", "SUSPECT", "HttpArena #1317; nghttp2 #1584", rate},
	{"arrivals", "gaps are as claimed: of Poisson arrivals, Anderson and Darling's A² is below " +
		"twice its 1 % point; of constant ones, 99 % are within 100 µs or 10 % of the mean gap",
		"SUSPECT", "Lancet, ATC 2019; Stephens, JASA 69, 1974", arrivals},
	{"bursts", "numbers of requests in bins of 1, 10 and 100 ms vary by less than 1.25 times " +
		"what Poisson arrivals do, randomness aside", "SUSPECT",
		"Cox & Lewis 1966; autocannon #174; wrk2 #89", bursts},
	{"batch", "an open load takes at most 32 answers in one turn of its loop, on average, and " +
		"never more than 1 % of all", "SUSPECT", "gcannon, zrk #62", batch},
	{"samples", "there are at least 381 independent answers, the least for an interval of p99",
		"SUSPECT", "order statistics as in Lancet, ATC 2019; Heidelberger & Lewis 1984", samples},
	{"settled", "the two halves of an open window of a steady rate do not differ by more than " +
		"25 % in median response time in 9 of 10 pairs of intervals", "SUSPECT",
		"Mann & Whitney 1947; wrk2's silent 10 s", settled},
	{"foreign", "the tool says how late it sends an open load, and invents no samples", "SUSPECT",
		"Tene, How NOT to Measure Latency; wrk #485; wrk2 #78", foreign},
}

// Rules lists every rule, for the documentation.
func Rules() []Rule {
	return slices.Concat([]Rule{ended}, trialRules, boundRules, loadRules, latencyRules)
}
