//go:build linux && !portable

package main

import (
	"fmt"
	"strings"
	"time"

	"prony/internal/result"
	"prony/internal/table"
	"prony/internal/unit"
)

// further is the last line of a run that went on for a time: what more of it would buy.
func (a *app) further(dir string) error {
	if !isRun(dir) {
		return nil
	}
	s, err := result.ReadSchedule(dir)
	if err != nil || s == nil || s.Next == nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, bought(s.Next))
	return err
}

// bought says it in words.
func bought(n *result.Next) string {
	text := "no comparison is open"
	if n.Open > 0 {
		text = unit.Plural(n.Open, "comparison") + " open"
	}
	text += fmt.Sprintf("; the next %s would buy ", roughly(time.Duration(n.ForNs)))
	of := strings.Join(n.Targets, ", ")
	if n.Blocks == 0 {
		return text + fmt.Sprintf("no block of %s, which takes %s", of,
			roughly(time.Duration(n.BlockNs)))
	}
	text += unit.Plural(n.Blocks, "block") + " of " + of
	if n.Would <= 0 || table.Unfound(n.Would) {
		return text
	}
	text += fmt.Sprintf(": differences of %s would show, now ", unit.Percent(n.Would))
	if table.Unfound(n.Resolves) {
		return text + "none but large ones"
	}
	return text + unit.Percent(n.Resolves)
}
