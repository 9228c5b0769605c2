package progress

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/load"
)

// The styles use the sixteen colors of the user's theme, faint and bold. They suit light and dark
// backgrounds, so the terminal's background need not be queried, and no meaning depends on color.
var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	ink   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	alarm = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
)

const (
	label     = 10 // columns of the first column
	value     = 12 // of a number
	gap       = "  "
	spent     = label + 2*value + len(gap) // columns before a sparkline
	widest    = 120                        // wider pages are harder to read
	barsLeast = 3                          // rows; fewer show too little
	barsMost  = 14
)

// frame draws the page, within height lines and width columns. It is a pure function.
func frame(s *state, width, height int) string {
	w := min(width, widest)
	parts := [][]string{s.head(w), s.numbers(w)}
	foot := s.foot()
	used := len(foot)
	for _, p := range parts {
		used += len(p) + 1
	}
	if room := height - used - 2; room >= barsLeast {
		parts = append(parts, s.bars(w, min(room, barsMost)))
	}
	parts = append(parts, foot)
	lines := joined(parts, height)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], w, "…")
	}
	return strings.Join(lines, "\n")
}

// joined puts empty lines between the parts if all of them fit; otherwise it cuts lines from the
// end.
func joined(parts [][]string, height int) []string {
	total := len(parts) - 1
	for _, p := range parts {
		total += len(p)
	}
	var lines []string
	for i, p := range parts {
		if i > 0 && total <= height {
			lines = append(lines, "")
		}
		lines = append(lines, p...)
	}
	return lines[:min(len(lines), max(height, 1))]
}

func (s *state) head(width int) []string {
	subject := s.Model
	if s.Engine != "" {
		subject += " · " + s.Engine
	}
	text := s.progressText()
	share, _ := s.progress()
	bar := max(width-ansi.StringWidth(text)-2, 8)
	full := int(math.Round(share * float64(bar)))
	return []string{
		bold.Render(format.Visible(s.Target)),
		faint.Render(subject),
		ink.Render(strings.Repeat("━", full)) + faint.Render(strings.Repeat("─", bar-full)) + "  " +
			text,
	}
}

func (s *state) progressText() string {
	_, remaining := s.progress()
	switch {
	case s.ending:
		return "ending"
	case s.phase() == connecting:
		return connecting
	case s.phase() == draining:
		return fmt.Sprintf("drain, %s at most", seconds(s.Lead+s.Window+s.Drain-s.elapsed))
	case s.phase() == leading:
		return fmt.Sprintf("lead-in · %s left", seconds(remaining))
	}
	over, all := seconds(s.elapsed-s.Lead), seconds(s.Window)
	if s.Requests > 0 {
		over, all = units.Count(s.counted()), units.Count(s.Requests)+" requests"
	}
	return fmt.Sprintf("%s of %s · %s left", over, all, seconds(remaining))
}

// seconds formats a duration for people who wait.
func seconds(d time.Duration) string {
	d = max(d, 0)
	if d < 100*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// numbers draws rates and response times: of the last point, of the window so far, and as
// sparklines over the whole load.
func (s *state) numbers(width int) []string {
	lines := []string{faint.Render(cell("", label) + right("now", value) + right("window", value))}
	row := func(name, now, complete string, pick func(point) float64) {
		lines = append(lines, cell(name, label)+right(now, value)+right(complete, value)+gap+
			sparkline(s.series, width-spent, pick))
	}
	rate := func(name string, total float64, pick func(point) int64) {
		perS := func(p point) float64 { return p.perS(pick(p)) }
		row(name, rateOf(perS(s.now)), rateOf(total), perS)
	}
	if s.Open {
		rate("offered", s.meanDue, func(p point) int64 { return p.due })
	}
	rate("answered", s.meanDone, func(p point) int64 { return p.done })
	_, full, most := summarise(s.all)
	time := func(name string, total int64, pick func(point) int64) {
		row(name, units.KnownDuration(pick(s.now)), units.KnownDuration(total),
			func(p point) float64 { return float64(pick(p)) })
	}
	for i, q := range percentiles {
		time(fmt.Sprintf("p%.0f", q), full[i], func(p point) int64 { return p.quantileNs[i] })
	}
	time("max", most, func(p point) int64 { return p.maxNs })
	return lines
}

func rateOf(perS float64) string {
	if perS == 0 {
		return units.Absent
	}
	return units.Rate(perS) + "/s"
}

// bars draws the histogram of the window's response times in at most rows rows. A bin whose bar
// would be invisible has a thin one, because a few slow responses among a million matter.
func (s *state) bars(width, rows int) []string {
	window := s.window()
	title := fmt.Sprintf("response times of %s responses", units.Count(window.count))
	lines := []string{faint.Render(title)}
	bins := binsOf(&window, rows)
	most := int64(0)
	for _, b := range bins {
		most = max(most, b.count)
	}
	for _, b := range bins {
		count := units.Count(b.count)
		room := max(width-label-value-len(gap), 1)
		long := int(math.Round(float64(room) * float64(b.count) / float64(max(most, 1))))
		bar := strings.Repeat("█", long)
		if long == 0 && b.count > 0 {
			bar = "▏"
		}
		lines = append(lines, right(b.name, label)+right(count, value)+gap+ink.Render(bar))
	}
	return lines
}

type bin struct {
	name  string
	count int64
}

// binsOf merges the buckets to at most rows bins, from the first nonempty bucket to the last: steps
// of 1, 2 and 5, or one or more decades.
func binsOf(t *tally, rows int) []bin {
	lo, hi := -1, -1
	for i, n := range t.classic {
		if n > 0 && lo < 0 {
			lo = i
		}
		if n > 0 {
			hi = i
		}
	}
	if lo < 0 {
		return nil
	}
	step := steps[len(steps)-1]
	for _, n := range slices.Backward(steps) {
		if group(hi, n)-group(lo, n) < rows {
			step = n
		}
	}
	var out []bin
	for g := group(lo, step); g <= group(hi, step); g++ {
		b := bin{name: "more"}
		last := min(g*step, len(edgesNs))
		if last < len(edgesNs) {
			b.name = "≤ " + units.Duration(float64(edgesNs[last]))
		}
		for i := max((g-1)*step+1, 0); i <= last; i++ {
			b.count += t.classic[i]
		}
		out = append(out, b)
	}
	return out
}

// steps lists the numbers of buckets that one bin may have. From 3 on, bins end at decades.
var steps = []int{1, 3, 6, 9, 15, 30}

// group returns the bin of a bucket if step buckets are merged.
func group(bucket, step int) int { return (bucket + step - 1) / step }

// foot draws errors, backlog, the verdict so far, and how to stop.
func (s *state) foot() []string {
	byClass, total := s.failed()
	errors := cell("errors", label) + "none"
	if total > 0 {
		var kinds []string
		for i, n := range byClass {
			if n > 0 {
				kinds = append(kinds, load.ClassNames[i]+" "+units.Count(n))
			}
		}
		errors = alarm.Render(cell("errors", label) + strings.Join(kinds, " · "))
	}
	state := fmt.Sprintf("%s%s in flight", cell("state", label), units.Count(s.totals.InFlight))
	if s.Open {
		state += fmt.Sprintf(" · backlog %s · lag p99 %s", units.Count(s.backlog()),
			units.KnownDuration(s.now.lagP99Ns))
	}
	if s.failures > 0 {
		state += fmt.Sprintf(" · %s pushes failed", units.Count(s.failures))
	}
	lines := []string{errors, state}
	if text, decides := s.soFar(); text != "" {
		text = cell("verdict", label) + text
		if decides != nil {
			text = alarm.Render(text + ": " + wording.Finding(*decides).Observed)
		}
		lines = append(lines, text)
	}
	help := "q ends the load and keeps the results so far"
	if s.ending {
		help = "the load is ending; q again discards the results"
	}
	return append(lines, faint.Render(help))
}

func cell(text string, width int) string { return format.Pad(text, width, format.Left) }

func right(text string, width int) string { return format.Pad(text, width, format.Right) }

var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws a value of each point, in width columns, from zero to the largest. If it has more
// points than columns, each column shows the largest of its points. Points without a value are
// blank.
func sparkline(points []point, width int, pick func(point) float64) string {
	if width < 1 || len(points) == 0 {
		return ""
	}
	perItem := (len(points) + width - 1) / width
	var tops []float64
	highest := 0.0
	for i, p := range points {
		if i%perItem == 0 {
			tops = append(tops, 0)
		}
		last := &tops[len(tops)-1]
		*last = max(*last, pick(p))
		highest = max(highest, *last)
	}
	var b strings.Builder
	for _, v := range tops {
		if v <= 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(sparks[min(int(v/highest*float64(len(sparks))), len(sparks)-1)])
	}
	return ink.Render(b.String())
}
