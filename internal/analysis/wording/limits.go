// Package wording puts the facts of a record into words: limits, and findings of a verdict. Facts
// become sentences only here, and no code parses a sentence. Non-goal: decisions; a sentence only
// states a value.
package wording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"prony.example/record"
)

// Limit returns a limit in words: "cpu quota 0.5 (cgroup v2)", or why nothing enforces it.
func Limit(l record.Limit) string {
	switch {
	case l.Text != "":
		return l.Text
	case l.By == record.ByNone:
		return of(l, unenforced(l))
	}
	amount := number(l.Value)
	switch {
	case l.Kind == record.LimitCores && l.By == record.ByAffinity:
		amount = list(l.Cores)
	case l.Kind == record.LimitCores:
		amount = ranges(l.Cores)
	}
	return of(l, enforced(l, amount))
}

// LimitKind returns a limit in force without its amount: "cpu quota (cgroup v2)".
func LimitKind(l record.Limit) string {
	if l.Kind == "" {
		return l.Text
	}
	return of(l, enforced(l, ""))
}

// Limits returns several limits in words, in their order.
func Limits(all []record.Limit) []string {
	var out []string
	for _, l := range all {
		out = append(out, Limit(l))
	}
	return out
}

// of prefixes the name of the process if a limit is about one process only.
func of(l record.Limit, text string) string {
	if l.Process != "" {
		return l.Process + ": " + text
	}
	return text
}

func enforced(l record.Limit, amount string) string {
	subject, source := l.Kind, " ("+l.By+")"
	switch {
	case l.By == record.ByHere:
		return "attached: as it was started"
	case l.By == record.ByAway:
		return "attached: another machine's, as it was started"
	case l.By == record.ByAffinity:
		subject, source = "affinity", ""
	case l.Kind == record.LimitCores:
		subject = "cpuset"
	case l.Kind == record.LimitCPU:
		subject = "cpu quota"
	case l.By == record.ByRlimit:
		subject = "private memory"
	}
	return strings.TrimSpace(subject+" "+amount) + source
}

func unenforced(l record.Limit) string {
	var subject string
	switch l.Kind {
	case record.LimitCores:
		subject = fmt.Sprintf("cores %v", l.Cores)
	case record.LimitCPU:
		subject = number(l.Value) + " CPUs"
	case record.LimitMemory:
		subject = "memory " + number(l.Value)
	case record.LimitSwap:
		subject = "no swap"
	case record.LimitGroup:
		subject = "control group"
	}
	why := l.Detail
	switch l.Reason {
	case record.EndedBefore:
		why = "the process ended before its limits could be read"
	case record.NotMounted:
		why = "the container's control groups are not mounted here"
	case record.PerContainer:
		subject += " for the system as a whole"
		why = "each container has this limit by itself: " + l.Detail
		if l.Kind == record.LimitMemory {
			why = "each container has a share of this limit: " + l.Detail
		}
	case record.NotCounted:
		why = "the kernel does not count it"
	case record.Permitted:
		why = "the node allows pods to swap"
	case record.Strayed:
		why = fmt.Sprintf("processes %v are in another control group", l.PIDs)
	}
	if why == "" {
		return subject
	}
	return subject + ": " + why
}

// number formats an amount in full: bytes are whole numbers, and processors have few digits.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// list formats each core of a list.
func list(cores []int) string {
	out := make([]string, len(cores))
	for i, c := range cores {
		out[i] = strconv.Itoa(c)
	}
	return strings.Join(out, ",")
}

// ranges formats a list of cores as the kernel does: "0-2,4".
func ranges(cores []int) string {
	var out []string
	sorted := slices.Sorted(slices.Values(cores))
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		text := strconv.Itoa(sorted[i])
		if end > i {
			text += "-" + strconv.Itoa(sorted[end])
		}
		out = append(out, text)
		i = end + 1
	}
	return strings.Join(out, ",")
}
