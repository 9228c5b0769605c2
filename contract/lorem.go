package contract

import (
	_ "embed" // for the text
	"strings"
)

//go:embed lorem.txt
var lorem string

// Lorem returns the first n bytes of the endlessly repeated text of lorem.txt, the body of `GET
// /file?size=n`.
func Lorem(n int) string {
	return strings.Repeat(lorem, n/len(lorem)+1)[:n]
}
