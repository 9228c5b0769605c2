package service

import "testing"

// A build from the cache names the variables that had other values, and not those that say where
// the command was typed.
func TestOtherwise(t *testing.T) {
	environ := func(pairs ...string) map[string]string {
		return (&Service{Environ: append(pairs, "SHLVL=3", "PATH=/bin")}).environ()
	}
	for _, c := range []struct {
		earlier, now map[string]string
		want         string
	}{
		{environ("A=1"), environ("A=1", "SSH_TTY=x"), ""},
		{environ("A=1"), environ("A=2"), "A"},
		{environ("_=a", "TERM_PROGRAM=a", "PS1=a"), environ("_=b", "PS1=b"), ""},
		{environ("_JAVA_OPTIONS=-Xmx1g"), environ("STYLE=b", "LINESIZE=9"), "LINESIZE, STYLE, " +
			"_JAVA_OPTIONS"},
		{environ("A=1"), environ(), "A"},
		{environ(), environ("B=1", "A=", "C=3", "D=4", "E="), "A, B, C, 2 more"},
		{nil, environ("A=1"), ""},
		{environ("A=1"), (&Service{}).environ(), ""},
	} {
		want := ""
		if c.want != "" {
			want = ", made with other values of " + c.want +
				". To build with the present values, set them in the build command"
		}
		if got := otherwise(c.earlier, c.now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
