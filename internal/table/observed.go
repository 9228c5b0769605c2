package table

import (
	"math"
	"strconv"
	"strings"
	"time"

	"prony/internal/pattern"
	"prony/internal/result"
)

// observed is what a finding saw, taken apart so that several can be told in few words.
type observed struct {
	words string  // "31.5 %", or all that was recorded where there is no number to compare
	sign  string  // ">" or "<": on which side of the limit it is; empty when that cannot be said
	limit string  // "2.0 %"; empty when the limit is no quantity ("steady", "none")
	over  float64 // how many times the limit, or the limit how many times it; from 1
}

// observe takes a finding apart. Brief words are the number alone, which suffices for a doubt; what
// excludes a number is told as the rule recorded it.
func observe(f result.Finding, brief bool) observed {
	o := observed{words: f.Observed}
	limit, ok := amountOf(f.Limit)
	if !ok || limit.text != strings.TrimSpace(f.Limit) {
		return o
	}
	o.limit = limit.text
	seen := f.Observed
	if _, worth, found := strings.Cut(seen, "worth "); found {
		seen = worth // "64438 answers, worth 200 independent ones": the 200 was held to the limit
	}
	for _, text := range amountIn.FindAllString(seen, -1) {
		q, ok := amountOf(text)
		if !ok || q.unit != limit.unit {
			continue
		}
		if brief {
			o.words = q.text
		}
		switch {
		case q.value > limit.value:
			o.sign, o.over = ">", q.value/limit.value
		case q.value < limit.value:
			o.sign, o.over = "<", limit.value/q.value
		}
		break
	}
	return o
}

// text prints it with its limit, "31.5 % > 2.0 %".
func (o observed) text() string {
	switch {
	case o.limit == "":
		return o.words
	case o.sign == "": // beyond the limit by less than is printed, or no number of its kind
		return strings.TrimPrefix(o.words+", limit "+o.limit, ", ")
	}
	return o.words + " " + o.sign + " " + o.limit
}

// several prints what one rule saw in several trials: the worst where numbers compare, else the
// first as an example.
func several(all []observed) string {
	worst := all[0]
	same, comparable := true, true
	for _, o := range all {
		same = same && o.text() == worst.text()
		comparable = comparable && o.sign != "" && o.sign == all[0].sign
	}
	if same {
		return worst.text()
	}
	if !comparable {
		return "e.g. " + all[0].text()
	}
	for _, o := range all {
		if o.over > worst.over {
			worst = o
		}
	}
	return "at worst " + worst.text()
}

// amount is a number with its unit.
type amount struct {
	text  string
	value float64
	unit  string // "%", "/s", "s" or empty
}

// amountIn finds numbers with the units that rules print, durations as Go prints them.
var amountIn = pattern.New(
	`\d[\d.]*(?: ?%|/s\b|(?:(?:ns|µs|ms|s|m|h)[\d.]*)+\b)?`)

// amountOf reads the first amount in a text.
func amountOf(text string) (amount, bool) {
	found := amountIn.FindString(text)
	number, unit := found, ""
	for _, u := range []string{"%", "/s"} {
		if n, ok := strings.CutSuffix(found, u); ok {
			number, unit = strings.TrimSpace(n), u
		}
	}
	if v, err := strconv.ParseFloat(number, 64); err == nil && !math.IsInf(v, 0) {
		return amount{found, v, unit}, true
	}
	if d, err := time.ParseDuration(found); err == nil {
		return amount{found, d.Seconds(), "s"}, true
	}
	return amount{}, false
}
