package generator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// The columns of a log of JMeter, in the order of openSheet; those from jtlSuccess on are optional.
const (
	jtlTime = iota
	jtlElapsed
	jtlCode
	jtlSuccess
	jtlMessage
	jtlThread
	jtlSamples
)

// jtl reads a log with a line for each sample (JTL).
type jtl struct {
	*sheet
	rows
	clock   moments
	want    int                // the expected status; 0: the tool's own opinion
	parents int64              // lines of transactions
	begun   map[string][]int64 // by thread: the begin of its last samples, in ns
	odd     int64              // good samples whose code is not 2xx or 3xx
}

// jtlHint says how to save a log that can be imported.
const jtlHint = "; save the log with -Jjmeter.save.saveservice.output_format=csv, " +
	"print_field_names=true and timestamp_format=ms"

// jmeterRows parses a log with a row for each sample. If a status is wanted, others are errors.
func jmeterRows(text string, want int) (*tally, error) {
	sheet, err := openSheet(text, []string{"timeStamp", "elapsed", "responseCode"},
		[]string{"success", "responseMessage", "threadName", "SampleCount"})
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, jtlHint)
	}
	l := &jtl{sheet: sheet, want: want, begun: map[string][]int64{}}
	for sheet.next() {
		l.row()
	}
	if err := sheet.finish(&l.tally); err != nil {
		return nil, err
	}
	if l.parents > 0 {
		l.note(NoteJMeterParents, l.parents)
	}
	if l.odd > 0 {
		l.note(NoteJMeterGoodStatus, l.odd)
	}
	if sheet.required[jtlSuccess] < 0 {
		l.note(NoteJMeterNoSuccess)
	}
	if l.ok.n > 0 && l.ok.least < 1 {
		l.note(NoteJMeterBelowMilli)
	}
	l.coarse(&l.clock)
	return l.sum(), nil
}

func (l *jtl) row() {
	// JMeter writes whole milliseconds, so a decimal mark would separate thousands.
	begin, elapsed := l.moment(jtlTime, &l.clock), l.count(jtlElapsed)
	if elapsed > histMax/1e6 {
		l.sheet.fail(jtlElapsed, errTooLong)
	}
	if l.err != nil {
		l.err = fmt.Errorf("%w%s", l.err, jtlHint)
		return
	}
	if m := jtlParent.FindStringSubmatch(l.cells[jtlMessage]); m != nil {
		l.parent(begin, m[1])
		return
	}
	if n := l.cells[jtlSamples]; n != "" && n != "1" {
		l.sheet.fail(jtlSamples, errors.New("the line has the sum of several samples; run JMeter "+
			"with -Jmode=Standard"))
		return
	}
	thread := l.cells[jtlThread]
	begun := append(l.begun[thread], begin)
	if len(begun) > 2*jtlKept {
		begun = append(begun[:0], begun[len(begun)-jtlKept:]...)
	}
	l.begun[thread] = begun
	l.rows.add(begin, elapsed*1e6, l.judge())
}

// jtlKept is the number of samples of a thread that its transactions can be compared with.
const jtlKept = 1 << 10

// jtlParent matches the message of a transaction, whose line has the sum of its samples' times.
var jtlParent = lazyregexp.New(`^Number of samples in transaction : (\d+), number of failing`)

// parent leaves out the line of a transaction, if its samples have lines of their own. The option
// "Generate parent sample" saves no such lines.
func (l *jtl) parent(begin int64, samples string) {
	n, err := integer(samples)
	if err != nil {
		l.sheet.fail(jtlMessage, err)
		return
	}
	var inside int64
	for _, from := range l.begun[l.cells[jtlThread]] {
		if from >= begin {
			inside++
		}
	}
	if inside < min(n, jtlKept) {
		l.sheet.fail(jtlMessage, fmt.Errorf("the line is the sum of a Transaction Controller, "+
			"and %d of its samples have no line of their own; switch off its option \"Generate "+
			"parent sample\"", n-inside))
		return
	}
	l.parents++
}

// judge books a sample. JMeter's column success decides, because it includes assertions. A code
// that is not a number is the text of a failure.
func (l *jtl) judge() bool {
	code := l.cells[jtlCode]
	status, err := strconv.Atoi(code)
	if l.required[jtlSuccess] < 0 {
		if err != nil {
			blame(&l.errors, code, 1)
			return false
		}
		return l.answered(status, l.want, 1)
	}
	good := false
	switch strings.ToLower(l.cells[jtlSuccess]) {
	case "true":
		good = true
	case "false":
	default:
		l.sheet.fail(jtlSuccess, errors.New("it is neither true nor false"))
	}
	usual := err == nil && (status == l.want || l.want == 0 && status >= 200 && status < 400)
	switch {
	case good && l.want == 0:
		l.good++
		if !usual {
			l.odd++
		}
		return true
	case good && usual:
		l.good++
		return true
	case err == nil && usual:
		l.errors.Body++
		example(&l.errors, "status %d, but JMeter marked the response as failed", status)
	case err == nil && l.want == 0:
		l.errors.Status++
		example(&l.errors, "status %d", status)
	case err == nil:
		l.answered(status, l.want, 1)
	default:
		blame(&l.errors, strings.TrimSpace(code+" "+l.cells[jtlMessage]), 1)
	}
	return false
}

func importJTL(text string) (*tally, error) {
	t, err := jmeterRows(text, 0)
	if err != nil {
		return nil, err
	}
	t.note(NoteJMeterModel)
	t.note(NoteJMeterMillis)
	return t, nil
}

// jtlBare matches the first line of a log without column heads.
var jtlBare = lazyregexp.New(`^(\d{13}|\d{4}[/-]\d\d[/-]\d\d[ T][\d:.]+)[,;\t|]\d+[,;\t|]`)

// importBareJTL refuses a log without column heads, whose columns depend on JMeter's settings.
func importBareJTL(string) (*tally, error) {
	return nil, errors.New("line 1: the file has no line of column heads" + jtlHint)
}

// jmeterLine matches a sum of the summariser; sums have =, parts have +.
var jmeterLine = lazyregexp.New(`summary =\s+(\d+) in (\S+) =\s+([\d.]+)/s Avg:\s+(\d+) ` +
	`Min:\s+(\d+) Max:\s+(\d+) Err:\s+(\d+)`)

// jmeterBegin is a line that JMeter prints once, before the sums of a run.
var jmeterBegin = lazyregexp.New(`(Creating summariser) <summary>`)

// jmeterLabels are the lines that the pattern must match.
var jmeterLabels = labels(`^summary =`, `^summary =\s+\d+ in \S+ =\s+[\d.]+/s Avg:\s+\d+ `+
	`Min:\s+\d+ Max:\s+\d+ Err:\s+\d+\b`)

// importJMeter parses the last sum of JMeter's summariser.
func importJMeter(text string) (*tally, error) {
	s := newScan(text)
	s.check(jmeterLabels)
	s.once(jmeterBegin)
	all := s.all(jmeterLine)
	if *s.err != nil {
		return nil, *s.err
	}
	if len(all) == 0 {
		return nil, errors.New(`the JMeter output has no line such as "summary = 1000 in ` +
			`00:00:02 = 500.0/s …"`)
	}
	m := all[len(all)-1]
	n := m.count(1)
	t := &tally{}
	if rate := m.number(3); rate > 0 {
		ns, err := scaled(float64(n)/rate, 1e9)
		m.fail(3, err)
		t.durationNs = ns
	}
	if t.errors.Status = m.count(7); t.errors.Status > n {
		m.fail(7, fmt.Errorf("the line counts only %d samples", n))
	}
	t.good = n - t.errors.Status
	t.service = record.Dist{Count: n, MeanNs: float64(m.span(4, 1e6)), MinNs: m.span(5, 1e6),
		MaxNs: m.span(6, 1e6)}
	if t.errors.Status > 0 {
		example(&t.errors, "Err: %d", t.errors.Status)
		t.note(NoteJMeterKinds)
	}
	t.note(NoteJMeterNoPercentiles)
	t.note(NoteJMeterMillisOfAll)
	t.note(NoteJMeterModel)
	return t, *s.err
}
