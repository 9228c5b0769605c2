package buildflags

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestFlagsAreThoseOfTheMakefile checks that make bench and make build use the same flags.
// Otherwise a first run would compile twice, or without Lavish.
func TestFlagsAreThoseOfTheMakefile(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	want := "\nFLAGS = " + strings.Join(Flags, " ") + " '" + Link + "'\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("the Makefile has no %q", want)
	}
	for _, said := range regexp.MustCompile(`GOGC=\d+`).FindAllString(string(text), -1) {
		if said != Lavish {
			t.Errorf("the Makefile has %s, want %s", said, Lavish)
		}
	}
}
