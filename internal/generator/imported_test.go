package generator

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

var update = flag.Bool("update", false, "write goldens/imported.txt")

// omitted are fields without a value, and histograms: percentiles stand beside them.
var omitted = regexp.MustCompile(`"hdr":"[^"]*",?|"\w+":(0|""|null|{}|\[\]),`)

// TestImported checks all that is read from the inputs of TestInputs, with all notes.
func TestImported(t *testing.T) {
	var b strings.Builder
	for _, in := range slices.Concat(jtlInputs, rowInputs, k6Inputs, textInputs) {
		fmt.Fprintf(&b, "== %s\n", in.name)
		l, notes, err := Import("a.x", in.text)
		if err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		for len(text) > len(omitted.ReplaceAll(text, nil)) {
			text = omitted.ReplaceAll(text, nil)
		}
		fmt.Fprintf(&b, "%s\n%s", text,
			strings.Join(append(Sentences(notes), ""), "\n"))
	}
	testsets.Golden(t, *update, "goldens/imported.txt", b.String())
}
