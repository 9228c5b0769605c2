package verdict

import (
	"slices"
)

// The results of rules that bound their findings.
const (
	ifMoved = "SUSPECT by the bound"
	aCause  = "reported as a possible cause"
	aRemark = "note on the service"
)

// ended is checked first: if a trial failed, its measurements are not judged.
var ended = Rule{"failed",
	"every step of the trial succeeded",
	"",
	"INVALID",
	"docs/formats/record.md", failed}

var trialRules = []Rule{
	{"warm-up",
		"the service was steady before the first window, the closed window continues " +
			"that state, and observable compilers were idle in it",
		"for throughput, times and CPU per request: the difference between the window's end and " +
			"its mean, plus the compilers' share of the service's time; the bounds of *drift* " +
			"and *settled* if compilers were idle in the window, or the runtime has no " +
			"compiler. For ratios from slices: the change of the ratio from all rounds to the " +
			"last quarter, averaged over starts, plus the compilers' share",
		ifMoved + ", also if compilers were busy all the time",
		"HttpArena #1417, spring-quarkus-perf-comparison #633", warmup},
	{"quiet",
		"no other process used the machine just before the trial, or the machine was idle again " +
			"soon after",
		"",
		aCause,
		"postrust #11; bencher noise", quiet},
	{"limits",
		"every requested limit is in force",
		"",
		"SUSPECT",
		"kubernetes #67577; docs/decisions/0005-launching.md", limits},
	{"log",
		"the record has the whole output of the service; beyond a size limit, records have only " +
			"its beginning and end",
		"",
		aCause,
		"docs/formats/record.md", chatty},
	{"cores",
		"service and load run on separate cores",
		"",
		"SUSPECT",
		"postrust #11; Treadmill, ISCA 2016", cores},
	{"pod",
		"a pod has cores that neither another pod nor the load may use",
		"",
		"SUSPECT",
		"Kubernetes, Control CPU Management Policies on the Node", podCores},
	{"reader",
		"a reader on the pod's node read the pod's resource usage at both edges of each window, " +
			"late by at most 1 % of the window",
		"",
		"SUSPECT",
		"docs/decisions/0043-reader.md", readings},
	{"cluster",
		"the API of the cluster that started a pod was reachable all the time",
		"",
		aCause,
		"docs/decisions/0035-kubernetes.md", clusterAway},
}

// boundRules check the conditions under which a load has a latency at all. If one of them makes the
// load INVALID, printers withhold the latency (see Withheld). Capacity comes before delivered,
// because it explains the cause if both fail.
var boundRules = []Rule{
	{"answers",
		"at least one response is good",
		"",
		"INVALID",
		"wrk #457", answers},
	{"sums",
		"each response and each timeout is in the response times exactly once, and " +
			"nothing else is (third-party tool: within 1 %)",
		"",
		"INVALID; for a third-party tool SUSPECT",
		"wrk #485; hey #112, #227", sums},
	{"generators",
		"each of several generators began on time, stayed in contact and sent its " +
			"result, and meets *stalled*, *delivered*, *generator*, *run delay*, *lag* and " +
			"*batch*",
		"",
		"INVALID; SUSPECT if one generator is SUSPECT by itself",
		"docs/decisions/0037-generators.md", generators},
	{"stalled",
		"no load thread was stopped for 0.1 s",
		"closed load: the stop's share of the window, beyond *run delay*; open load: the bound " +
			"of *lag*",
		ifMoved + "; from 0.5 s on INVALID",
		"signal(7), SIGSTOP; Tene's jHiccup", stoodStill},
	{"order",
		"percentiles do not decrease and lie between minimum and maximum",
		"",
		"INVALID",
		"locust #331, #777", order},
	{"capacity",
		"the backlog grows by less than 1 % of the rate, allowing for randomness, " +
			"changes of the rate and pauses",
		"",
		"INVALID",
		"wrk2 #81, #94", capacity},
	{"delivered",
		"99 % of the arrivals due in the window, or all but five, were sent in it",
		"",
		"INVALID",
		"Lancet, ATC 2019; HttpArena #1317", delivered},
}

var loadRules = []Rule{
	{"generator",
		"each load thread is busy for less than 80 % of the window, not counting polling",
		"closed load: the processor time that the service left unused; open load: none",
		ifMoved,
		"FrameworkBenchmarks #5207; Hyperfoil's watchdog", generatorBusy},
	{"run delay",
		"load threads never wait for a processor",
		"closed load: the wait's share of the window, or the processor time that the service " +
			"left unused if that is less; open load: the bound of *lag*",
		ifMoved,
		"Linux, Documentation/scheduler/sched-stats.rst", runDelay},
	{"ceiling",
		"throughput is below 70 % of the generator's against a no-op server",
		"the bound of *generator*",
		ifMoved,
		"the-benchmarker #9662, #9775", ceiling},
	{"network",
		"the median of the delay that the generator added to round trips differs from the " +
			"requested delay by at most 5 %, or 0.1 ms if that is more",
		"",
		"SUSPECT",
		"docs/decisions/0061-network.md", networkDelay},
	{"little",
		"requests under way equal rate × mean service time within 5 %",
		"",
		"SUSPECT, beyond 20 % INVALID",
		"Little, Operations Research 9(3), 1961", little},
	{"starving",
		"closed load: requests from before the window are under way in it for at most 5 % longer " +
			"than the window's own requests are after it, in shares of all requests under way",
		"one rank, above all others, per connection that can have waited through the window",
		ifMoved,
		"Little, Operations Research 9(3), 1961", starving},
	{"errors",
		"every response has the right status and body",
		"one rank per wrong response",
		ifMoved + "; above 0.1 % INVALID",
		"HttpArena #939", failures},
	{"backend calls",
		"the backend's own counter has the calls that the suite declares for each request, " +
			"within 1 %, five calls and the calls that are not counted yet",
		"",
		"INVALID; SUSPECT if other clients of the backend may hide it; " + aRemark +
			" if the counter cannot show it",
		"docs/project.md", unasked},
	{"censored",
		"every request was answered by the end of the drain",
		"one rank per unanswered request",
		ifMoved + "; above 1 % INVALID",
		"Tene, How NOT to Measure Latency", censored},
	{"datagrams",
		"HTTP/3: no datagram was lost because a socket's buffer was full",
		"one rank per request that a loss can have delayed; closed load: also the longest " +
			"response time for each of them",
		ifMoved + ", also if losses are so frequent that congestion control reduces the rate",
		"RFC 9002, section 7; Mathis et al., CCR 27(3), 1997; proc_pid_net(5)", datagrams},
	{"clocks",
		"the clocks of several generators of an open load are known and do not drift, " +
			"within 100 µs or 10 % of the mean gap",
		"",
		"SUSPECT, beyond 0.1 s INVALID; wall clocks that differ by more than 0.1 s are " + aCause,
		"RFC 5905, section 8; docs/decisions/0037-generators.md", clocks},
	{"range",
		"no response time exceeds the limit of histograms, 18 minutes",
		"",
		"SUSPECT",
		"HdrHistogram; gcannon's 5 s, JMeter's window of 20,000", clipped},
	{"connections",
		"fewer than 1 % of the requests opened a new connection that the load does not request. " +
			"A service that closes 99 % or more of its connections is measured as it is",
		"the bound of *steal*, with a request's time (at least 100 µs), TLS time and connection " +
			"time for each new connection; at least one rank per new connection",
		ifMoved,
		"the-benchmarker #9421", reconnects},
	{"retried",
		"at most 0.1 % of the requests were sent again because the service closed their " +
			"kept-alive connection before it read them",
		"",
		aRemark,
		"RFC 9112, section 9.3.1; RFC 9113, section 8.7", retried},
	{"early",
		"at most 0.1 % of the responses came before their request was sent completely",
		"",
		aRemark,
		"RFC 9112, section 9.5; RFC 9113, section 8.1", early},
	{"delayed ack",
		"responses do not end with the kernel's delayed acknowledgment: from first byte " +
			"to end, the median is outside of 39 to 51 ms, or times above the median vary by " +
			"more than 10 ms",
		"",
		aRemark,
		"RFC 896; RFC 1122, section 4.2.3.2; Linux, TCP_DELACK_MIN", delayed},
	{"unused",
		"a closed load of at least 32 connections without pauses and network delay uses half " +
			"of the service's processor time, unless the generator or others prevent it",
		"",
		aRemark,
		"Gregg, Systems Performance, 2.3.6 (saturation)", unused},
	{"drift",
		"both halves of a closed window of a steady load have the same throughput, " +
			"within randomness",
		"half the difference between both halves",
		ifMoved,
		"Kalibera & Jones, ISMM 2013", drift},
	{"steal",
		"the hypervisor took no processor time",
		"the taken share, as if all of it had been the service's; in ranks, twice this share",
		ifMoved + "; above 10 % INVALID",
		"proc(5), /proc/stat; bencher noise", steal},
	{"throttled",
		"the service was throttled for less than 1 % of the window",
		"",
		"SUSPECT",
		"kubernetes #67577", throttled},
	{"neighbors",
		"other processes used no processor time",
		"the bound of *steal*, or the processor time that the service left unused if that is less",
		ifMoved,
		"postrust #11", neighbours},
	{"idle targets",
		"other targets of the start used no processor time in the window",
		"the bound of *steal*",
		ifMoved,
		"docs/slices.md", idleTargets},
	{"memory",
		"no task stalled on memory",
		"the bound of *steal*",
		ifMoved,
		"Linux, Documentation/accounting/psi.rst", memory},
}

// latencyRules check only response times. They are skipped if the load has no latency that counts,
// because their findings would follow from the INVALID finding.
var latencyRules = []Rule{
	{"lag",
		"requests are sent when they are due",
		"the send delay that a response can have inherited since no request was under way; or, " +
			"if that is less or the former is unknown, twice the send delay at the ranks that it " +
			"can have moved",
		ifMoved,
		"Treadmill, ISCA 2016; wrk2 #78", lag},
	{"timer",
		"if the load is sent late, its timer was less than half as late before the load",
		"",
		aCause,
		"nighthawk #204; cql-stress #134, #140; Hyperfoil #342", timer},
	{"waited",
		"no arrival found every connection busy",
		"the smallest of: one rank per such arrival, its wait, the time that more connections " +
			"would have saved",
		ifMoved,
		"k6-docs #974; vegeta #344", waited},
	{"rate",
		"99 % of each second's arrivals, or all but five, were sent in that second, not counting " +
			"arrivals that waited for a connection",
		"",
		"SUSPECT",
		"HttpArena #1317; nghttp2 #1584", rate},
	{"arrivals",
		"the gaps between requests match the declared arrival process. Poisson: Anderson and " +
			"Darling's A² is below twice its 1 % point or 2 % of the number of gaps. Constant: " +
			"99 % of gaps are within 100 µs, 10 % of the mean gap, or the delay that *lag* " +
			"explains",
		"",
		"SUSPECT",
		"Lancet, ATC 2019; Stephens, JASA 69, 1974", arrivals},
	{"bursts",
		"request counts in bins of 1, 10 and 100 ms vary as those of Poisson arrivals, " +
			"within randomness",
		"excess variance: half of it, applied to the part of response times above the minimum; " +
			"too little variance: all of it, up to 25 %",
		ifMoved,
		"Cox & Lewis 1966; Kingman 1961; autocannon #174; wrk2 #89", bursts},
	{"batch",
		"an open load takes at most 32 responses in one turn of its event loop on " +
			"average, and never more than 1 % of all",
		"",
		"SUSPECT",
		"gcannon, zrk #62", batch},
	{"samples",
		"there are at least 381 independent responses, the minimum for an interval of p99",
		"",
		"reported; numbers of this trial alone lack the percentile",
		"order statistics as in Lancet, ATC 2019; Heidelberger & Lewis 1984", samples},
	{"settled",
		"both halves of an open window of a steady rate have the same median response " +
			"time in 9 of 10 pairs of intervals",
		"half the difference between both halves",
		ifMoved,
		"Mann & Whitney 1947; wrk2's silent 10 s", settled},
	{"third-party tool",
		"the tool reports how late it sends an open load, and adds no invented samples",
		"",
		"SUSPECT",
		"Tene, How NOT to Measure Latency; wrk #485; wrk2 #78", foreign},
}

// Rules lists every rule, for the documentation.
func Rules() []Rule {
	return slices.Concat([]Rule{ended}, trialRules, boundRules, loadRules, latencyRules,
		sliceRules)
}
