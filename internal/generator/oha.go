package generator

import (
	"prony.example/internal/base/jsontree"
	"prony.example/record"
)

// ohaEnd is oha's name for a request in progress at the end of its time.
const ohaEnd = "aborted due to deadline"

// importOha parses the JSON of github.com/hatoo/oha, whose times are seconds. Values that oha could
// not compute are null: unknown.
func importOha(text string) (*tally, error) {
	reply, err := document(text)
	if err != nil {
		return nil, err
	}
	f := &fields{}
	f.need(reply, "summary")
	summary := reply.Field("summary")
	f.need(summary, "total")
	t := &tally{durationNs: f.span(summary.Field("total"), 1e9),
		bytesIn: f.count(summary.Field("totalData"))}
	var answers int64
	for _, status := range members(reply.Field("statusCodeDistribution")) {
		n := f.count(status)
		code, err := integer(status.Key)
		f.fail(status, err)
		answers += n
		t.answered(int(code), 0, n)
	}
	for _, subject := range members(reply.Field("errorDistribution")) {
		if subject.Key == ohaEnd {
			t.censored += f.count(subject)
		} else {
			blame(&t.errors, subject.Key, f.count(subject))
		}
	}
	t.service = f.ohaDist(answers, summary, reply.Field("latencyPercentiles"))
	good := reply.Field("latencyPercentilesSuccessful")
	if t.errors.Status > 0 && len(members(good)) > 0 {
		t.service = f.ohaDist(t.good, nil, good)
		t.note(NoteOhaGoodOnly)
	} else if t.errors.Status > 0 {
		t.note(NoteErrorStatus)
	}
	if first := reply.Field("firstBytePercentiles"); len(members(first)) > 0 {
		t.firstByte = f.ohaDist(answers, reply.Path("details", "firstByte"), first)
	}
	ohaNotes(t)
	return t, f.err
}

// members returns the members of an object; none for null.
func members(n *jsontree.Node) []*jsontree.Node {
	if n == nil {
		return nil
	}
	return n.Inside
}

func (f *fields) ohaDist(n int64, item, percentiles *jsontree.Node) record.Dist {
	d := record.Dist{Count: n, MinNs: f.span(item.Field("fastest"), 1e9),
		MeanNs: float64(f.span(item.Field("average"), 1e9)),
		MaxNs:  f.span(item.Field("slowest"), 1e9)}
	for _, p := range members(percentiles) {
		put(&d, p.Key, f.span(p, 1e9))
	}
	return d
}

func ohaNotes(t *tally) {
	t.note(NoteOhaRated)
	if t.errors.Status > 0 {
		t.note(NoteOhaSuccess)
	}
}

func importOhaRows(text string) (*tally, error) {
	t, err := importRows(text, "request-start", "request-duration", "status")
	if err != nil {
		return nil, err
	}
	t.note(NoteNoUnanswered, "oha")
	ohaNotes(t)
	return t, nil
}

// importOhaText parses oha's text.
func importOhaText(text string) (*tally, error) {
	t, err := importSummary(text, "sec")
	if err != nil {
		return nil, err
	}
	if t.errors.Status > 0 {
		t.note(NoteErrorStatus)
	}
	ohaNotes(t)
	return t, nil
}
