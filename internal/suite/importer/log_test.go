package importer

import (
	"strings"
	"testing"
)

// Lines of a log as servers write them: what is asked, and what is left out.
func TestLogLines(t *testing.T) {
	check := func(kind, lines, want string) {
		t.Helper()
		text := ""
		for line := range strings.SplitSeq(lines, "|") {
			if request, tail, ok := strings.Cut(line, " ~ "); ok {
				line = `192.0.2.4 - - [27/Nov/2026:10:00:00 +0000] "` + request + `" ` + tail
			}
			text += line + "\n"
		}
		drafted(t, kind)(text, want)
	}
	const a = "GET /a HTTP/1.1 ~ 200 5"
	const notHTTP = "\n- 2: lines whose request is not HTTP"
	check("", `\x16\x03\x01 ~ 400 150|- ~ 408 0|`+a+"|"+a, "GET /a 2×200"+notHTTP)
	check("", "# a comment||"+a, "GET /a 1×200\n"+
		"- 1: lines in a format that is not known")
	check("", a+"|a|b", "read f: it is an access log of another format; write it in the "+
		"combined format")
	check("", `GET /s?q=\x22a\x22&r=\"b\" HTTP/1.1 ~ 200 5 "-" "a \"b\""`,
		"GET /s?q=%22a%22&r=%22b%22 1×200")
	check("", `GET /\xC3\xBC\\x\t\q#d HTTP/2.0 ~ 200 5`, "GET /%C3%BC%5Cx%09%5Cq%23d 1×200")
	check("", "GET /u?q=a b HTTP/1.1 ~ 200 5", "GET /u?q=a%20b 1×200")
	check("", "GET /u HTTP/1.1 ~ 000 0|"+a,
		"GET /a 1×200\n- 1: the client ended the request before a response")
	check("", "GET /u ~ 200 5", "GET /u 1×200")
	check("", "GET /r?u=http://b/ HTTP/1.1 ~ 302 -", "GET /r?u=http://b/ 1×302")
	check("", `GET /\x00A\x00 HTTP/1.1 ~ 200 5|`+a, "GET /a 1×200\n- 1: a NUL in its text")
	check("", "get / HTTP/1.1 ~ 200 5| ~ 400 0|"+a, "GET /a 1×200"+notHTTP)
	check("", "POST /a HTTP/1.1 ~ 200 5|DELETE /a HTTP/1.1 ~ 200 5|CONNECT b:443 HTTP/1.1 ~ 200 5|"+
		"GET http://b/ HTTP/1.1 ~ 200 5|"+a, "GET /a 1×200\n"+
		"- 1: requests with a body, which a log does not have\n"+
		"- 2: methods other than GET and HEAD\n"+
		"- 1: requests whose target is not a path of this server")
	const part = ": the status 206 is expected as 200, because the request is sent without the " +
		"field that asks for it"
	check("", "GET /d HTTP/1.1 ~ 206 10|GET /d HTTP/1.1 ~ 200 99", "GET /d 2×200\n~ 1"+part)
	check("", "GET /d HTTP/1.1 ~ 206 10|GET /d HTTP/1.1 ~ 206 9", "GET /d 2×200\n~ 2"+part)
	check("", "GET /d HTTP/1.1 ~ 302 1|GET /d HTTP/1.1 ~ 200 9|GET /d HTTP/1.1 ~ 200 9",
		"GET /d 3×200")
	check("", `shop:80 2001:db8::1 - "a b" [27/Nov/2026:10:00:00 +0000] "GET /v HTTP/1.1" 200`,
		"GET /v 1×200")
}
