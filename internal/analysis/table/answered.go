package table

import "slices"

// Answered returns the sheet for a reader who has the answers already. It has neither the answers
// nor advice on the number of starts: the answers advise by the metric that decides, and the tables
// by the metric of the tiers, which often needs another number.
func (s Sheet) Answered() Sheet {
	s.Answers = nil
	s.Tables = slices.Clone(s.Tables)
	for i := range s.Tables {
		t := &s.Tables[i]
		t.Notes = slices.Clone(t.Notes)
		for k, n := range t.Notes {
			if n.Kind == NoteTiersPlan {
				t.Notes[k] = NoteOf(NoteTiers, n.Args[0])
			}
		}
	}
	return s
}
