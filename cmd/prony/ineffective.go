package main

import (
	"strings"

	"prony.example/internal/base/cli"
)

// noEffect are flags that have no effect because of others, if is; hint follows their name.
type noEffect struct {
	is    bool
	flags string
	hint  string
}

// refuse returns a usage error for the first given flag that has no effect.
func refuse(given func(string) bool, rows ...noEffect) error {
	for _, row := range rows {
		for name := range strings.FieldsSeq(row.flags) {
			if row.is && given(name) {
				return cli.Usagef("--%s %s", name, row.hint)
			}
		}
	}
	return nil
}
