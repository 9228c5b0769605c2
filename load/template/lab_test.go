package template

import (
	"testing"
)

// A response is compared byte for byte, except for ports chosen by the kernel, in any pieces.
func TestPattern(t *testing.T) {
	check := func(in, body string, want bool) {
		t.Helper()
		parsed, err := Parse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := parsed.At("h:80", "80").Pattern()
		for size := 1; size <= len(body)+1; size++ {
			var at Place
			same, good := 0, true
			for from := 0; good && from < len(body); from += size {
				piece := []byte(body[from:min(from+size, len(body))])
				n := p.Next(&at, piece)
				good, same = n == len(piece), same+n
			}
			if got := good && p.Whole(&at); got != want {
				t.Errorf("%q against %q in pieces of %d: %v after %d bytes, want %v", body, in,
					size, got, same, want)
			}
		}
	}
	const in = "at {lab host}, {lab port}: {lab source}; {lab source}!"
	check(in, "at h:80, 80: 1; 65535!", true)
	for _, wrong := range []string{"", "at h:80, 80: 1; 65535", "at h:80, 80: 1; 65535!!",
		"at h:80, 80: 1; !", "at h:80, 80: ; 1!", "at h:80, 80: 1; 655350!", "at h:81, 80: 1; 1!",
		"at h:80, 81: 1; 1!", "at h:80, 80: a; 1!", "at h:80, 80: 1, 1!", "at h:80, 80: 1; 6553a!",
		"bt h:80, 80: 1; 1!", "at h:80, 80: 1"} {
		check(in, wrong, false)
	}
	check("{lab source}", "7", true)
	check("{lab source}", "", false)
	check("{lab source} {lab source}", "1 ", false)
	check("{lab source} {lab source}", "1", false)
	if p, err := Parse(in, nil); err != nil || p.Pattern() != nil || p.Lab() != "{lab host}" {
		t.Errorf("an address that is not known is held: %v, %v", p, err)
	}
	at := Place{}
	p, _ := Parse(in, nil)
	like, body := p.At("h:80", "80").Pattern(), []byte("at h:80, 80: 12345; 65535!")
	if n := testing.AllocsPerRun(100, func() { at = Place{}; like.Next(&at, body) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	for _, wrong := range []string{"{lab}", "{lab x}", "{lab host port}"} {
		if _, err := Parse(wrong, nil); err == nil {
			t.Errorf("%s is a placeholder", wrong)
		}
	}
}
