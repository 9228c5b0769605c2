package table

import (
	"fmt"
	"strings"

	"prony.example/record"
)

// Uncopied lists targets that worked in the folder that was built, in starts in which others worked
// in a fresh copy each time.
type Uncopied []struct {
	Row     string
	Reasons []string // record's NoCopy names, each once
}

// copiesNote names the targets without copies, if others had copies.
func (sc *Scenario) copiesNote() []Note {
	if sc.Starts == nil {
		return nil
	}
	var without Uncopied
	for _, t := range sc.Targets {
		var reasons []string
		for _, r := range t.Trials {
			if r.Artifact.NoCopy != "" {
				reasons = AddNew(reasons, r.Artifact.NoCopy)
			}
		}
		if len(reasons) > 0 {
			without = append(without, struct {
				Row     string
				Reasons []string
			}{t.Name, reasons})
		}
	}
	if len(without) == 0 || len(without) == len(sc.Targets) {
		return nil
	}
	return []Note{NoteOf(NoteCopies, without)}
}

// noCopyTexts has the reasons in words.
var noCopyTexts = map[string]string{
	record.NoCopyContainer: "it runs in a container",
	record.NoCopyAttached:  "it was already running",
	record.NoCopyGiven:     "Prony did not build it",
	record.NoCopyLarge:     "its folder is too large to copy",
	record.NoCopyFailed:    "copying its folder failed",
}

func (u Uncopied) String() string {
	var out []string
	for _, t := range u {
		var reasons []string
		for _, name := range t.Reasons {
			text, ok := noCopyTexts[name]
			if !ok {
				text = name
			}
			reasons = append(reasons, text)
		}
		out = append(out, fmt.Sprintf("%s (%s)", t.Row, strings.Join(reasons, ", ")))
	}
	return strings.Join(out, ", ")
}
