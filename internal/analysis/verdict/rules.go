package verdict

import (
	"slices"
)

// What becomes of a record by rules that bound what they find.
const (
	ifMoved = "SUSPECT where it can have moved a number"
	aCause  = "named as a cause"
	aRemark = "named, as a remark on the service, which is measured as it is"
)

// ended stands before the others: what a trial that failed has measured is not looked at.
var ended = Rule{"failed", "every step of the trial went well", "INVALID",
	"docs/formats/record.md", failed}

var trialRules = []Rule{
	{"warm-up", "a steady state was reached before the first window, and the closed one is part " +
		"of it, and compilers were silent in it, where they can be heard; if not, the window's " +
		"end against its mean and what compilers took of the service's time are the bound, and " +
		"where nothing compiles while it serves, or did, drift and settled are",
		"SUSPECT where it can have moved a number, or compilers always had something to do",
		"HttpArena #1417, spring-quarkus-perf-comparison #633", warmup},
	{"quiet", "nothing else used the machine in the moments before the trial, or it was quiet " +
		"again soon", aCause, "postrust #11; bencher noise", quiet},
	{"limits", "every limit asked for is in force", "SUSPECT",
		"kubernetes #67577; docs/decisions/0005-launching.md", limits},
	{"log", "what the service wrote is kept: its beginning and its end have bounds", aCause,
		"docs/formats/record.md", chatty},
	{"cores", "service and load run on cores of their own", "SUSPECT",
		"postrust #11; Treadmill, ISCA 2016", cores},
	{"pod", "a pod has cores of its own, which no other pod and not the load may run on",
		"SUSPECT", "Kubernetes, Control CPU Management Policies on the Node", podCores},
	{"reader", "a reader on the pod's node read at each window's two edges, no later than by 1 % " +
		"of the window", "SUSPECT", "docs/decisions/0043-reader.md", readings},
	{"cluster", "the cluster that started a pod could be asked all the time", aCause,
		"docs/decisions/0035-kubernetes.md", clusterAway},
}

// boundRules are about what must hold before a load has a latency at all. Where one of them makes
// it INVALID, printers withhold the latency (see Withheld). Capacity comes before delivered: where
// both object it knows why.
var boundRules = []Rule{
	{"answers", "there are good answers", "INVALID", "wrk #457", answers},
	{"sums", "each answer and each timeout is in the response times once, and nothing else is; " +
		"of a foreign tool, within 1 %", "INVALID, of a foreign tool SUSPECT",
		"wrk #485; hey #112, #227", sums},
	{"generators", "each generator of a load from many began when it was agreed, was heard of, " +
		"and had its last word; and each alone meets stalled, delivered, generator, run " +
		"delay, lag and batch", "INVALID, or SUSPECT where a part is by itself",
		"docs/decisions/0037-generators.md", generators},
	{"stalled", "no load thread stood still for 0.1 s; of a closed load the share of the " +
		"window is the bound, beside run delay, and of an open one lag is",
		ifMoved + ", from 0.5 s on INVALID", "signal(7), SIGSTOP; Tene's jHiccup", stoodStill},
	{"order", "percentiles do not decrease and lie between minimum and maximum", "INVALID",
		"locust #331, #777", order},
	{"capacity", "the backlog grows by less than 1 % of the rate, beside randomness and what a " +
		"change of rate or a pause explains", "INVALID", "wrk2 #81, #94", capacity},
	{"delivered", "99 % of the arrivals due in the window, or all but five, were sent in it",
		"INVALID", "Lancet, ATC 2019; HttpArena #1317", delivered},
}

var loadRules = []Rule{
	{"generator", "each load thread is busy for less than 80 % of the window, polling aside; of " +
		"a closed load, the processor time that the service left unused bounds what it missed",
		ifMoved, "FrameworkBenchmarks #5207; Hyperfoil's watchdog", generatorBusy},
	{"run delay", "load threads wait for no processor; of a closed load the share of the window " +
		"is the bound, and what the service left unused another; of an open one lag is", ifMoved,
		"Linux, Documentation/scheduler/sched-stats.rst", runDelay},
	{"ceiling", "throughput is below 70 % of the generator's against a null server; the bound is " +
		"that of generator", ifMoved,
		"the-benchmarker #9662, #9775", ceiling},
	{"little", "requests under way equal rate times mean service time within 5 %",
		"SUSPECT, beyond 20 % INVALID", "Little, Operations Research 9(3), 1961", little},
	{"errors", "every answer has the right status and body; as many ranks are the bound",
		ifMoved + ", above 0.1 % INVALID",
		"HttpArena #939", failures},
	{"backend calls",
		"what a request asks of a database or an upstream, as the suite says, was asked " +
			"by its own counter, 1 %, five and what is not counted yet aside",
		"INVALID; where what others ask may hide it SUSPECT", "docs/project.md", unasked},
	{"censored", "every request was answered by the end of the drain; as many ranks are the bound",
		ifMoved + ", above 1 % INVALID", "Tene, How NOT to Measure Latency", censored},
	{"datagrams", "of HTTP/3, no datagram was lost for want of room in a socket's buffer; as " +
		"many ranks as requests that each can have held up are the bound, of a closed load also " +
		"the longest time of each",
		ifMoved + ", or more were lost than congestion control lets pass unnoticed in answers of " +
			"that length", "RFC 9002, section 7; Mathis et al., CCR 27(3), 1997; proc_pid_net(5)",
		datagrams},
	{"clocks", "the clocks of the generators of an open load from many are known, and do not " +
		"drift, within 100 µs or 10 % of the mean gap", "SUSPECT, beyond 0.1 s INVALID",
		"RFC 5905, section 8; docs/decisions/0037-generators.md", clocks},
	{"range", "no time is longer than the 18 minutes that histograms reach to", "SUSPECT",
		"HdrHistogram; gcannon's 5 s, JMeter's window of 20,000", clipped},
	{"connections", "fewer than 1 % of the requests cost a new connection, asked-for ones aside; " +
		"the bound is that of steal with a request's time for each, at least 100 µs, and its " +
		"TLS, and its share of the connections' time; in ranks at least the share of such " +
		"requests; a service that keeps none, 99 % and more, is measured as it is", ifMoved,
		"the-benchmarker #9421", reconnects},
	{"retried", "at most 0.1 % of the requests were sent again because the service closed their " +
		"kept-alive connection before it took them", aRemark,
		"RFC 9112, section 9.3.1; RFC 9113, section 8.7", retried},
	{"delayed ack", "no answer's end waits for an acknowledgement that the kernel puts off for " +
		"40 ms: half of them have it within 39 ms of their first byte, or after 51 ms, or it " +
		"varies by more than 10 ms", aRemark,
		"RFC 896; RFC 1122, section 4.2.3.2; Linux, TCP_DELACK_MIN", delayed},
	{"unused", "at a closed load of 32 connections and more, without pauses, the service uses " +
		"half of its processor time, where neither the generator nor others keep it from that",
		aRemark, "Gregg, Systems Performance, 2.3.6 (saturation)", unused},
	{"drift", "the two halves of a closed window of a steady load do not differ in throughput, " +
		"randomness aside; half the difference is the bound", ifMoved,
		"Kalibera & Jones, ISMM 2013", drift},
	{"steal", "the hypervisor took none of the processors' time; the bound is that all was the " +
		"service's, in ranks twice the share", ifMoved + ", above 10 % INVALID",
		"proc(5), /proc/stat; bencher noise", steal},
	{"throttled", "the service was throttled for less than 1 % of the window", "SUSPECT",
		"kubernetes #67577", throttled},
	{"neighbors", "other processes used none of the processors' time; the bound is that of " +
		"steal, and what the service left unused", ifMoved,
		"postrust #11", neighbours},
	{"memory", "no task stalled on memory; the bound is that of steal", ifMoved,
		"Linux, Documentation/accounting/psi.rst", memory},
}

// latencyRules are about response times alone. Where there are none that count, what may be wrong
// with them is of no interest: it follows from what is INVALID already.
var latencyRules = []Rule{
	{"lag", "the load leaves when it is due; the bound is what answers can have been held up by " +
		"since nothing was under way, and where that is not known or more, twice the lag, at the " +
		"ranks that it may have moved", ifMoved, "Treadmill, ISCA 2016; wrk2 #78", lag},
	{"timer", "where the load is late, its timer was not half as late before", aCause,
		"nighthawk #204; cql-stress #134, #140; Hyperfoil #342", timer},
	{"waited", "no arrival found every connection busy; as many ranks are the bound, and what is " +
		"known of lag aside, what the closed load left of the service's processor time", ifMoved,
		"k6-docs #974; vegeta #344", waited},
	{"rate", "99 % of each second's arrivals, or all but five, left in it, but for those that " +
		"waited for a connection", "SUSPECT", "HttpArena #1317; nghttp2 #1584", rate},
	{"arrivals", "gaps are as claimed: of Poisson arrivals, Anderson and Darling's A² is below " +
		"twice its 1 % point or 2 % of their number; of constant ones, 99 % are within 100 µs, " +
		"10 % of the mean gap or what lag explains", "SUSPECT",
		"Lancet, ATC 2019; Stephens, JASA 69, 1974", arrivals},
	{"bursts", "numbers of requests in bins of 1, 10 and 100 ms vary as Poisson arrivals do, " +
		"randomness aside; half of an excess bounds what is above the least, what is missing " +
		"bounds all, up to 25 %",
		ifMoved, "Cox & Lewis 1966; Kingman 1961; autocannon #174; wrk2 #89", bursts},
	{"batch", "an open load takes at most 32 answers in one turn of its loop, on average, and " +
		"never more than 1 % of all", "SUSPECT", "gcannon, zrk #62", batch},
	{"samples", "there are at least 381 independent answers, the least for an interval of p99",
		"named: the percentile is withheld",
		"order statistics as in Lancet, ATC 2019; Heidelberger & Lewis 1984", samples},
	{"settled", "the two halves of an open window of a steady rate do not differ in median " +
		"response time in 9 of 10 pairs of intervals; half the difference is the bound", ifMoved,
		"Mann & Whitney 1947; wrk2's silent 10 s", settled},
	{"third-party tool", "the tool says how late it sends an open load, and invents no samples",
		"SUSPECT",
		"Tene, How NOT to Measure Latency; wrk #485; wrk2 #78", foreign},
}

// Rules lists every rule, for the documentation.
func Rules() []Rule {
	return slices.Concat([]Rule{ended}, trialRules, boundRules, loadRules, latencyRules,
		sliceRules)
}
