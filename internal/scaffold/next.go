package scaffold

import (
	"fmt"
	"strings"
)

// Next says what was written and what is left to do.
func (l *Layout) Next() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d files, after %s\n", l.Folder, len(l.Files), l.Like)
	for _, f := range l.Changed {
		fmt.Fprintf(&b, "%s: lists it\n", f.Path)
	}
	for _, file := range l.Missing {
		fmt.Fprintf(&b, "%s: not in this checkout, so not changed\n", file)
	}
	fmt.Fprintf(&b, `
It answers as its contracts say, by %s. Next:

  prony verify %[2]s     now, and after each change
  %[3]s/README.md        the files to change, in order
  prony fairness %[2]s --update docs/fairness.md     once its answers are its own
  prony run --targets %[2]s,%[4]s --blocks 5
`, l.Framework, l.Name, l.Folder, l.Like)
	return b.String()
}
