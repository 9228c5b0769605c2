package table

import (
	"reflect"
	"testing"
)

// Below an answer, tables give no second advice on the number of starts. The sheet itself, which is
// also saved, keeps its advice.
func TestAnswered(t *testing.T) {
	advice := NoteOf(NoteTiersPlan, "start", Plan{Effect: 0.03, Needed: 2000, Have: 6,
		Repeat: "start"})
	other := NoteOf(NoteLogNormal)
	sheet := Sheet{Tables: []Table{{Notes: []Note{other, advice}}}}
	want := []Note{other, NoteOf(NoteTiers, "start")}
	if got := sheet.Answered().Tables[0].Notes; !reflect.DeepEqual(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if got := sheet.Tables[0].Notes; !reflect.DeepEqual(got, []Note{other, advice}) {
		t.Errorf("the sheet's notes are now %v", got)
	}
}
