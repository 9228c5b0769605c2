package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/units"
	"prony.example/internal/generator"
	"prony.example/record"
)

// mark finds a value in a tool's output that generator.Import omits, or returns without its printed
// digits.
type mark struct {
	quantity Quantity
	pattern  *lazyregexp.Pattern
	unit     string
}

func marksOf(pairs ...string) (out []mark) {
	for i := 0; i+2 < len(pairs); i += 3 {
		out = append(out, mark{Quantity(pairs[i]), lazyregexp.New(pairs[i+1]), pairs[i+2]})
	}
	return out
}

var wrkMarks = marksOf(
	"asked duration", `Running (\S+) test`, "",
	"connections", `threads and (\d+) connections`, "",
	"mean", `(?m)^[ \t]*Latency[ \t]+([\d.]+\w+)`, "",
	"stdev", `(?m)^[ \t]*Latency[ \t]+\S+[ \t]+([\d.]+\w+)`, "",
	"max", `(?m)^[ \t]*Latency[ \t]+\S+[ \t]+\S+[ \t]+([\d.]+\w+)`, "",
	"p50", `(?m)^\s*50(?:\.0+)?%\s+([\d.]+\w+)`, "",
	"p75", `(?m)^\s*75(?:\.0+)?%\s+([\d.]+\w+)`, "",
	"p90", `(?m)^\s*90(?:\.0+)?%\s+([\d.]+\w+)`, "",
	"p99", `(?m)^\s*99(?:\.0+)?%\s+([\d.]+\w+)`, "",
	"p99.9", `(?m)^\s*99\.90*%\s+([\d.]+\w+)`, "",
	"requests", `(\d+) requests in `, "",
	"duration", `requests in ([\d.]+\w+),`, "",
	"bytes", `requests in [\d.]+\w+, (\S+) read`, "",
	"rate", `Requests/sec:\s+([\d.]+)`, "",
	"bytes/s", `Transfer/sec:\s+(\S+)`, "")

var heyMarks = marksOf(
	"duration", `(?m)^\s*Total:\s+([\d.]+ \w+)`, "",
	"max", `Slowest:\s+([\d.]+ \w+)`, "",
	"min", `Fastest:\s+([\d.]+ \w+)`, "",
	"mean", `Average:\s+([\d.]+ \w+)`, "",
	"rate", `Requests/sec:\s+([\d.]+)`, "",
	"p50", `(?m)^\s*50(?:\.0+)?%+ in ([\d.]+ \w+)`, "",
	"p75", `(?m)^\s*75(?:\.0+)?%+ in ([\d.]+ \w+)`, "",
	"p90", `(?m)^\s*90(?:\.0+)?%+ in ([\d.]+ \w+)`, "",
	"p95", `(?m)^\s*95(?:\.0+)?%+ in ([\d.]+ \w+)`, "",
	"p99", `(?m)^\s*99(?:\.0+)?%+ in ([\d.]+ \w+)`, "",
	"p99.9", `(?m)^\s*99\.90*%+ in ([\d.]+ \w+)`, "")

// printed lists the values in the text of each tool.
var printed = map[string][]mark{
	"wrk": wrkMarks, "wrk2": wrkMarks, "hey": heyMarks,
	"oha": append(marksOf(
		"duration", `"total":\s*([\d.]+)`, "s",
		"rate", `"requestsPerSec":\s*([\d.]+)`, ""), heyMarks...),
	"k6": marksOf(
		"duration", `running \((\S+)\), \d+/\d+ VUs`, "",
		"users", `(?m)vus_max\.+:.*max=(\d+)`, "",
		"mean", `http_req_duration\.+:.*avg=(\S+)`, "",
		"min", `http_req_duration\.+:.*min=(\S+)`, "",
		"p50", `http_req_duration\.+:.*med=(\S+)`, "",
		"p90", `http_req_duration\.+:.*p\(90\)=(\S+)`, "",
		"p95", `http_req_duration\.+:.*p\(95\)=(\S+)`, "",
		"p99", `http_req_duration\.+:.*p\(99\)=(\S+)`, "",
		"max", `http_req_duration\.+:.*max=(\S+)`, "",
		"requests", `http_reqs\.+:\s*(\d+)`, "",
		"rate", `http_reqs\.+:\s*\d+\s+([\d.]+)/s`, "",
		"error share", `http_req_failed\.+:\s*([\d.]+%)`, "",
		"errors", `http_req_failed\.+:\s*[\d.]+%\s+✓ (\d+)`, "",
		"errors", `http_req_failed\.+:\s*[\d.]+%\s+(\d+) out of`, "",
		"iterations", `(?m)^\s*iterations\.+:\s*(\d+)`, "",
		"iterations/s", `(?m)^\s*iterations\.+:\s*\d+\s+([\d.]+)/s`, "",
		"iteration mean", `iteration_duration\.+:.*avg=(\S+)`, "",
		"iteration min", `iteration_duration\.+:.*min=(\S+)`, "",
		"bytes", `data_received\.+:\s*([\d.]+ \w+)`, "",
		"bytes/s", `data_received\.+:\s*[\d.]+ \w+\s+([\d.]+ \w+/s)`, ""),
	"h2load": marksOf(
		"duration", `finished in ([\d.]+\w+),`, "",
		"duration", `of warm-up time and ([\d.]+s) of main duration`, "", // the rate's part
		"rate", `finished in [\d.]+\w+, ([\d.]+) req/s`, "",
		"requests", `requests: \d+ total, \d+ started, (\d+) done`, ""),
	"jmeter": marksOf(
		"requests", `summary =\s+(\d+) in `, "",
		"duration", `summary =\s+\d+ in (\S+) =`, "",
		"rate", `summary =\s+\d+ in \S+ =\s+([\d.]+)/s`, "",
		"mean", `summary =.*Avg:\s+(\d+)`, "ms",
		"min", `summary =.*Min:\s+(\d+)`, "ms",
		"max", `summary =.*Max:\s+(\d+)`, "ms",
		"errors", `summary =.*Err:\s+(\d+)`, ""),
	"vegeta": marksOf(
		"requests", `"requests":\s*(\d+)`, "",
		"duration", `"duration":\s*(\d+)`, "ns",
		"rate", `"rate":\s*([\d.]+)`, ""),
}

// h2loadHeads matches the names of the columns of times.
var h2loadHeads = lazyregexp.New(`(?m)^ +min +max .*$`)

// h2loadTimes returns the marks of the table of times, whose columns depend on h2load's version.
func h2loadTimes(text string) []mark {
	columns := strings.Fields(h2loadHeads.FindString(text))
	if len(columns) == 0 {
		columns = []string{"min", "max", "mean", "sd"}
	}
	quantities := map[string]Quantity{"min": Min, "max": Max, "mean": Mean, "sd": Deviation,
		"median": P50, "p95": P95, "p99": P99}
	var marks []mark
	for i, name := range columns[:min(len(columns), len(h2loadCells))] {
		if quantity, ok := quantities[name]; ok {
			marks = append(marks, mark{quantity, h2loadCells[i], ""})
		}
	}
	return marks
}

// h2loadCells match the cells of the row of requests, in order.
var h2loadCells = func() (cells [7]*lazyregexp.Pattern) {
	for i := range cells {
		cells[i] = lazyregexp.New(fmt.Sprintf(`time for request:(?:\s+\S+){%d}\s+(\S+)`, i))
	}
	return cells
}()

// wrk and h2load print sizes in powers of 1024, regardless of the unit's name.
var binarySize = lazyregexp.New(`([KMGT])B`)

// printedMost bounds the size of a tool's output for people, in bytes, including hours of progress.
// A larger file has a row for each request and no such words, and searching it takes half a minute.
const printedMost = 16 << 20

// readSaved reads a tool's output; nil for other texts. Its first line has the number line. Its
// error is about a text in a tool's format.
func readSaved(name, text string, line int) (*Row, error) {
	l, notes, err := generator.Import(name, text)
	if foreign := (*generator.Unrecognized)(nil); errors.As(err, &foreign) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tool, _, _ := strings.Cut(l.Driver, " ")
	row := &Row{Name: name, Line: line + leading(text), Tool: tool, Model: l.Model,
		Values: map[Quantity]Value{}, Notes: notes}
	row.take(l, row.Line, true)
	switch tool {
	case "wrk", "wrk2":
		row.Counted = float64(l.Errors.Status)
	case "hey", "oha", "k6":
		row.Counted = float64(l.Errors.Total())
	}
	marks := printed[tool]
	switch tool {
	case "k6":
		text = generator.K6Total(text)
	case "h2load":
		marks = append(slices.Clone(marks), h2loadTimes(text)...)
	}
	if len(text) > printedMost {
		marks = nil
	}
	for _, m := range marks {
		all := m.pattern.FindAllStringSubmatchIndex(text, -1)
		if len(all) == 0 {
			continue
		}
		// JMeter and k6 print their progress and the total last; wrk2 prints its uncorrected times
		// after the corrected ones.
		positions := all[0]
		if tool == "jmeter" || tool == "k6" {
			positions = all[len(all)-1]
		}
		cell := text[positions[2]:positions[3]]
		if tool == "wrk" || tool == "wrk2" || tool == "h2load" {
			cell = binarySize.ReplaceAllString(cell, "${1}iB")
		}
		v, ok := parseValue(cell, m.unit, m.quantity)
		if !ok {
			continue
		}
		v.Line = line + strings.Count(text[:positions[0]], "\n")
		if strings.HasPrefix(text[positions[0]:], "\n") {
			v.Line++
		}
		if m.quantity == Requests || m.quantity == Errors || m.quantity == Iterations {
			v.Slack = 0
		}
		row.Values[m.quantity] = v
	}
	if n, ok := row.get(Requests); ok && tool == "oha" {
		row.Aborted = float64(l.Censored)
		n.Slack = row.Aborted // they are in its rate
		row.Values[Requests] = n
	}
	return row, nil
}

// leading returns the number of empty lines at the start of a text.
func leading(text string) int {
	return strings.Count(text[:len(text)-len(strings.TrimLeft(text, " \t\r\n"))], "\n")
}

// imprecision is the assumed error of a value whose printed digits are unknown.
const imprecision = 0.002

// take adds the values of a load. If derived is true, the tool's reader may have computed its rate
// and time from other values.
func (r *Row) take(l *record.Load, line int, derived bool) {
	d := &l.ResponseTime
	if d.Count == 0 {
		d = &l.ServiceTime
	}
	set := func(q Quantity, v float64, shown string, made bool) {
		if v > 0 {
			r.Values[q] = Value{
				V:       v,
				Slack:   v * imprecision,
				Text:    shown,
				Line:    line,
				derived: made,
			}
		}
	}
	ended := float64(l.Done + l.Errors.Total())
	set(Requests, ended, units.Whole(ended), false)
	set(Duration, float64(l.WindowNs), units.Duration(float64(l.WindowNs)), derived)
	set(Rate, l.ThroughputPerS, rateText(l.ThroughputPerS), derived)
	set(Connections, float64(l.Connections), units.Whole(float64(l.Connections)), false)
	set(Streams, float64(l.Streams), units.Whole(float64(l.Streams)), false)
	offered := l.RatePerS
	if l.Driver == "" && l.Scheduled > 0 && l.WindowNs > 0 && offered > 0 {
		// The rate due in the window: the number of Poisson arrivals differs from the requested
		// one.
		offered = float64(l.Scheduled) / (float64(l.WindowNs) / 1e9)
	}
	set(Offered, offered, rateText(offered), false)
	failed := float64(l.Errors.Total())
	r.Values[Errors] = Value{V: failed, Text: units.Whole(failed), Line: line}
	for q, ns := range map[Quantity]float64{Mean: d.MeanNs, Min: float64(d.MinNs),
		P50: float64(d.P50Ns), P90: float64(d.P90Ns), P99: float64(d.P99Ns),
		P999: float64(d.P999Ns), Max: float64(d.MaxNs)} {
		set(q, ns, units.Duration(ns), false)
	}
}
