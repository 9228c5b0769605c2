package record

import (
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
)

// Version 1 had sentences where newer records have values. They are read here, once, so that nobody
// else has to look into a sentence; the words themselves are kept, and are what is printed.

// limitIn1 finds the parts of a limit in words: the process of a system, the kind, a number or a
// list of cores, and what enforces it.
var limitIn1 = lazyregexp.New(`^(?:([^:()]+): )?` +
	`(affinity|cpuset|cpu quota|memory|private memory) ` +
	`(?:([0-9.e+]+)|\[?([0-9]+(?:[ ,-][0-9]+)*)\]?)(?: \((cgroup v[12]|rlimit)\))?$`)

// missingIn1 finds the kind of a limit that nothing enforced.
var missingIn1 = lazyregexp.New(
	`^(?:([^:()]+): )?(cores \[|[0-9.e+-]+ CPUs|memory [0-9]|no swap|control group: )`)

// limitOfText reads a limit of version 1. Of one in an unknown form only the words are known.
func limitOfText(text string) Limit {
	l := Limit{Text: text}
	if m := limitIn1.FindStringSubmatch(text); m != nil {
		l.Process, l.By = m[1], m[5]
		if m[2] == "affinity" || m[2] == "cpuset" {
			l.Kind, l.Cores = LimitCores, coresOfText(m[3]+m[4])
		} else {
			l.Kind = LimitMemory
			l.Value, _ = strconv.ParseFloat(m[3], 64)
		}
		switch m[2] {
		case "affinity":
			l.By = ByAffinity
		case "cpu quota":
			l.Kind = LimitCPU
		}
		return l
	}
	if m := missingIn1.FindStringSubmatch(text); m != nil {
		l.Process, l.By = m[1], ByNone
		switch what := m[2]; {
		case what == "cores [":
			l.Kind = LimitCores
		case strings.HasSuffix(what, "CPUs"):
			l.Kind = LimitCPU
		case what == "no swap":
			l.Kind = LimitSwap
		case what == "control group: ":
			l.Kind, l.Reason = LimitGroup, Strayed
		default:
			l.Kind = LimitMemory
		}
	}
	return l
}

// coresOfText reads a list of cores as the kernel or Go writes it: "0-2,4", "0 1".
func coresOfText(text string) (cores []int) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || last < first || last > first+maxCores {
			return nil
		}
		for c := first; c <= last; c++ {
			cores = append(cores, c)
		}
	}
	return cores
}

// maxCores is above the number of cores of a machine: Linux knows at most 8192.
const maxCores = 1 << 13
