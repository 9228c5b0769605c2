package address

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	check := func(text string, want Address) {
		t.Helper()
		if got, err := Parse(text, "http", "https", "ws"); err != nil || got != want {
			t.Errorf("%s: %+v, error %v\nwant %+v", text, got, err, want)
		}
	}
	http := func(host, name, port, path string) Address {
		return Address{Scheme: "http", Host: host, Name: name, Port: port, Path: path}
	}
	local := func(path string) Address { return http("127.0.0.1:80", "127.0.0.1", "80", path) }
	check("http://127.0.0.1:80", local("/"))
	check("HTTP://127.0.0.1:80", local("/"))
	check("http://127.0.0.1:80?next=/home", local("/?next=/home"))
	check("http://127.0.0.1:80?a=b@c:d", local("/?a=b@c:d"))
	check("http://127.0.0.1:80?", local("/?"))
	check("http://127.0.0.1:80//a/../b/./?c", local("//a/../b/./?c"))
	check("http://127.0.0.1:80/straße?q=ö", local("/stra%C3%9Fe?q=%C3%B6"))
	check("http://127.0.0.1:80/{pick ä|b}/{random 1..9}/${X}", local(
		"/{pick %C3%A4|b}/{random 1..9}/${X}"))
	check("http://127.0.0.1:80/%41%c3%9f/%{hex 2}", local("/%41%c3%9f/%{hex 2}"))
	check("http://127.0.0.1:80/\xff", local("/%FF"))
	check("http://shop.test:/", http("shop.test", "shop.test", "", "/"))
	check("http://my_service/", http("my_service", "my_service", "", "/"))
	check("http://Bücher.example:81/", http("xn--bcher-kva.example:81", "xn--bcher-kva.example",
		"81", "/"))
	check("http://b%C3%BCcher.example/", http("xn--bcher-kva.example", "xn--bcher-kva.example", "",
		"/"))
	check("http://[::1]:81/x", http("[::1]:81", "::1", "81", "/x"))
	for _, zone := range []string{"%25eth0", "%eth0"} {
		check("http://[fe80::1"+zone+"]:81/x", http("[fe80::1]:81", "fe80::1%eth0", "81", "/x"))
	}
	// printf 'ann:open' | base64
	ann := local("/")
	ann.Basic = "Basic YW5uOm9wZW4="
	check("http://ann:open@127.0.0.1:80", ann)
	ann.Basic = "Basic YW5uOg==" // "ann:"
	check("http://ann@127.0.0.1:80/", ann)
	ann.Basic = "Basic OnQ=" // ":t"
	check("http://:t@127.0.0.1:80/", ann)
	ann.Basic = "Basic YUBiOi86JQ==" // "a@b:/:%"
	check("http://a%40b:%2F:%25@127.0.0.1:80/", ann)
	check("http://@127.0.0.1:80/", local("/"))
	check("http://:@127.0.0.1:80/", local("/"))
}

func TestRefused(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		a, err := Parse(text, "http", "https")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Hint == "" {
			t.Errorf("%s: %+v, error %v; want %s", text, a, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the error has the password: %v", text, err)
		}
	}
	check("127.0.0.1:80/", "the URL must have a form such as http://127.0.0.1:8080/path; use one "+
		"of the schemes http, https")
	check("ftp://127.0.0.1/", "the URL must have a form such as")
	check("ftp://ann:sesame@127.0.0.1/", "the URL must have a form such as")
	check("http:///x", `host and port "" cannot be read`)
	check("http://127.0.0.1/a b", "a path cannot contain ' '; write %20")
	check("http://127.0.0.1/{pick a b|c}", "write %20")
	check("http://127.0.0.1/{ a}", "write %20")
	check("http://127.0.0.1/\tx", `'\t'; write %09`)
	check("http://127.0.0.1/x\r\nHost: y", "write %0D")
	check("http://127.0.0.1/100%", `the % in "%" begins no escape such as %20; write %25`)
	check("http://127.0.0.1/100%/x", `the % in "%/x"`)
	check("http://127.0.0.1/?rate=5%&x", `"%&x"`)
	check("http://127.0.0.1/{pick 5%|6}", `"%|6"`)
	check("http://127.0.0.1/%{key}", "write %25")
	check("http://127.0.0.1/x#top", "do not send the fragment #top of a URL; remove it")
	check("http://127.0.0.1#", "do not send the fragment")
	check("http://127.0.0.1:0/", "use a number from 1 to 65535")
	check("http://127.0.0.1:65536/", "use a number from 1 to 65535")
	check("http://127.0.0.1:x/", "cannot be read")
	check("http://::1:80/", "write an IPv6 address in brackets")
	check("http://a b/", "cannot be read")
	check("http://xn--\u00fc/", "Punycode")
	check("http://ann:sesame/street@127.0.0.1/", "as %2F, %3F and %23")
	check("http://ann:sesame#1@127.0.0.1/", "as %2F, %3F and %23")
	check("http://ann:sesame%zz@127.0.0.1/", "percent-encoding")
	check("http://an%3An:sesame@127.0.0.1/", "cannot contain a colon")
}

func TestOrigin(t *testing.T) {
	for _, text := range []string{"http://[fe80::1%25eth0]:81", "http://[::1]", "https://a.test:4",
		"http://127.0.0.1:80"} {
		if a, err := Parse(text+"/x", "http", "https"); err != nil || a.Origin() != text {
			t.Errorf("%s: %s, error %v", text, a.Origin(), err)
		}
	}
	for text, want := range map[string]string{"[fe80::1%eth0]:8": "[fe80::1]:8",
		"[::1]:8": "[::1]:8", "127.0.0.1:8": "127.0.0.1:8"} {
		if got := WithoutZone(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		a, err := Parse(text, "http")
		if err != nil {
			t.Fatal(err)
		}
		all, err := a.Resolve(t.Context(), "80")
		if err == nil && all[0].String() != want || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, error %v; want %s", text, all, err, want)
		}
	}
	check("http://127.0.0.1/", "127.0.0.1:80")
	check("http://[::ffff:127.0.0.1]:8/", "127.0.0.1:8")
	check("http://[::1]/", "[::1]:80")
	check("http://app.localhost:81/", "127.0.0.1:81") // RFC 6761, 6.3: not a question for DNS
	check("http://B\u00fccher.LOCALHOST./", "127.0.0.1:80")
	check("http://localhost.:82/", "127.0.0.1:82")
	check("http://[fe80::1]/", `fe80::1 is a link-local address, and "" is not an interface; write an interface`)
	check("http://[fe80::1%25none9]/", `"none9" is not an interface`)
}

// Of several addresses the first one that accepts a connection is used, and all others are named.
func TestChoose(t *testing.T) {
	refused := errors.New("refused")
	check := func(up []string, want, note string, all ...string) {
		t.Helper()
		var addrs []netip.AddrPort
		for _, text := range all {
			addrs = append(addrs, netip.MustParseAddrPort(text))
		}
		a := Address{Name: "two.test"}
		got, said := a.Choose(addrs, func(addr netip.AddrPort) error {
			if slices.Contains(up, addr.String()) {
				return nil
			}
			return refused
		})
		if got.String() != want || said != note {
			t.Errorf("%v of %v: %v, %q; want %s, %q", up, all, got, said, want, note)
		}
	}
	const v4, v6, other = "127.0.0.1:8", "[::1]:8", "127.0.0.2:8"
	const two = "two.test has the addresses 127.0.0.1 and ::1: "
	check(nil, v4, "", v4)
	check([]string{v4, v6}, v4, two+"only 127.0.0.1 is used", v4, v6)
	check([]string{v6}, v6, two+"only ::1 is used; 127.0.0.1: refused", v4, v6)
	check(nil, v4, two+"none accepts a connection; 127.0.0.1: refused; ::1: refused", v4, v6)
	check([]string{other}, other, "two.test has the addresses 127.0.0.1, 127.0.0.2 and ::1: only "+
		"127.0.0.2 is used; 127.0.0.1: refused", v4, other, v6)
}

// What is accepted is ASCII without spaces outside of placeholders, and stays the same if it is
// parsed again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"http://a:b@[fe80::1%25lo]:80/ü?x=%41#", "http://h?x=/@",
		"http://ü/{pick ä|b}", "http://127.0.0.1/100%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text, "http")
		if err != nil {
			return
		}
		again, err := Parse(a.Origin()+a.Path, "http")
		a.Basic = ""
		if err != nil || again != a {
			t.Errorf("%q is %+v, and this is %+v, error %v", text, a, again, err)
		}
		if i := strings.IndexFunc(a.Path, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
			t.Errorf("%q: path %q", text, a.Path)
		}
	})
}
