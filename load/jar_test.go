package load

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Cookies are sent in the order of RFC 6265, section 5.4: those with longer paths first, then older
// ones first. A cookie that is set again stays as old as it was.
func TestOrderOfCookies(t *testing.T) {
	var j jar
	take := func(path, fields string) {
		j.take([]byte("HTTP/1.1 200 OK\r\n"+fields), []byte(path), time.Unix(1e9, 0))
	}
	check := func(path, want string) {
		t.Helper()
		if want != "" {
			want = "Cookie: " + want + "\r\n"
		}
		if got := string(j.field(nil, []byte(path), time.Unix(1e9, 0))); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	check("/", "")
	take("/login", "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; Path=/api\r\n"+
		"Set-Cookie: c=3; Path=/\r\nSet-Cookie: a=4; Path=/api/x\r\nSet-Cookie: d=5\r\n")
	check("/", "a=1; c=3; d=5")
	check("/api/x?q", "a=4; b=2; a=1; c=3; d=5")
	check("/apis", "a=1; c=3; d=5")
	take("/", "Set-Cookie: a=6\r\nSet-Cookie: c=; Max-Age=0\r\n")
	check("/api", "b=2; a=6; d=5")
	for i := range cookiesMax { // which are as many as there is room for
		take("/", fmt.Sprintf("Set-Cookie: n%d=x; Path=/n\r\n", i))
	}
	check("/api/x", "")
}

// A cookie is sent until it expires; Max-Age decides before Expires (RFC 6265, section 5.3).
func TestCookiesExpire(t *testing.T) {
	var j jar
	at := func(s int64) time.Time { return time.Unix(1e9+s, 0).UTC() }
	expires := "; Expires=" + at(60).Format(http.TimeFormat)
	j.take([]byte("HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Max-Age=30\r\nSet-Cookie: b=2"+expires+
		"\r\nSet-Cookie: c=3; Max-Age=90"+expires+"\r\nSet-Cookie: d=4\r\n"), []byte("/"), at(0))
	for s, want := range map[int64]string{29: "a=1; b=2; c=3; d=4", 31: "b=2; c=3; d=4",
		61: "c=3; d=4", 91: "d=4"} {
		if got := string(j.field(nil, []byte("/"), at(s))); got != "Cookie: "+want+"\r\n" {
			t.Errorf("after %d s: %q, want %s", s, got, want)
		}
	}
}
