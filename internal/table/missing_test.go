package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What was planned and has no record is told, and what cannot be read of the records.
func TestWhatIsMissing(t *testing.T) {
	records := three()
	records[0].Trial, records[1].Trial, records[2].Trial = "b1-01-a", "b2-03-a", "b3-05-a"
	records[1].Loads[0].ResponseTime.HDR = "damaged"
	s := Analyze(records, Options{Missing: []string{"b1-02-java-jdk.virtual", "b2-04-b",
		"b3-06-java-jdk.virtual", "b4-07-a", "b5-08-a", "b6-09-a", "b7-10-a"}})
	sheet := s.Sheet()
	last := sheet.Verdicts[len(sheet.Verdicts)-1]
	if last.Grade != MissingGrade || last.Trials != 7 ||
		!strings.HasSuffix(last.Reason, "b5-08-a, b6-09-a and 1 more") {
		t.Errorf("tally %+v", last)
	}
	if !strings.HasSuffix(sheet.Head, " · 3 of 10 planned trials") {
		t.Errorf("head %q", sheet.Head)
	}
	var spans []string
	for _, r := range sheet.Tables[0].Rows {
		if r.Span != "" {
			spans = append(spans, r.Name+": "+r.Span)
		}
	}
	if want := []string{"b: none of its 1 planned trial has a record",
		"java-jdk/virtual: none of its 2 planned trials has a record"}; !slices.Equal(spans, want) {
		t.Errorf("rows %q", spans)
	}
	note := fmt.Sprintf("The histogram of %s in b2-03-a is damaged", records[1].Loads[0].Name)
	if notes := strings.Join(sheet.Tables[0].Notes, "\n"); !strings.Contains(notes, note) {
		t.Errorf("notes %q", notes)
	}
}
