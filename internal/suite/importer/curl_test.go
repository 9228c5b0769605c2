package importer

import (
	"strings"
	"testing"
)

const (
	formBody = "application/x-www-form-urlencoded"
	jsonBody = "application/json"
)

// drafted checks what is made of a text of a kind: see sent.
func drafted(t *testing.T, kind string) func(text, want string) {
	return func(text, want string) {
		t.Helper()
		d, err := Options{Kind: kind}.Read("f", []byte(text))
		if got := strings.TrimSuffix(sent(d, err), "\n"); got != want {
			t.Errorf("%s\nis   %s\nwant %s", text, got, want)
		}
	}
}

// left is the error if every request was left out.
func left(kind, why string) string {
	return "read f as " + kind + ": every request was left out: 1: " + why +
		"; add an example to the file, or pass only --url"
}

// What is sent is what curl would send. Rows with a request were held against curl 7.88.
func TestCurlRequest(t *testing.T) {
	check := drafted(t, Curl)
	const a = "curl http://a/a "
	check(a+"-d ''", "POST /a 1×200 Content-Type="+formBody)
	check(a+"-d '' -H 'Content-Type:'", "POST /a 1×200")
	check(a+"-d x -H 'Content-Type:' -H 'X;' -H 'Y:'", "POST /a 1×200 X= [x] \n"+
		"~ 1: a body without a Content-Type is sent with text/plain")
	check(a+`--json '{"a"' --json ':1}' -d b=2`,
		`POST /a 1×200 Accept=application/json [{"a":1}&b=2] `+jsonBody)
	check(a+`-d x --json y -H 'accept: z'`, "POST /a 1×200 accept=z [xy] "+jsonBody)
	check(a+`--data-raw @x -d '&y' --data-binary z`, "POST /a 1×200 [@x&&y&z] "+formBody)
	check(a+"--data-urlencode 'b=c d&e~*é' --data-urlencode '=f g' --data-urlencode 'h i'",
		"POST /a 1×200 [b=c+d%26e~%2A%C3%A9&f+g&h+i] "+formBody)
	check(a+"--data-urlencode 'c d@x=y'", "POST /a 1×200 [c d@x=y] "+formBody)
	check("curl 'http://a/a?z=1#f' -G -d a=1 --url-query b=2", "GET /a?z=1&a=1 1×200")
	check("curl 'http://a/a#f' --url-query 'b=2 3' --url-query +x=y%20z --url-query '=q r'",
		"GET /a?b=2+3&x=y%20z&q+r 1×200")
	check("curl 'http://a?x=1'", "GET /?x=1 1×200")
	check(a+"-X PUT -G -d x=1", "PUT /a?x=1 1×200")
	check(a+"-GId x=1", "HEAD /a?x=1 1×200")
	check(a+"-X PUT -I", "PUT /a 1×200")
	check(a+"-r 0-9", "GET /a 1×206 Range=bytes=0-9")
	check(a+"-r 600", "GET /a 1×206 Range=bytes=600-")
	check(a+"-r 0-1 -H 'Range: bytes=3-4'", "GET /a 1×206 Range=bytes=3-4")
	check(a+"-u a:b -H 'Authorization: Bearer x' -b a=1 -H 'Cookie: z=1'",
		"GET /a 1×200 Authorization=Bearer ${TOKEN} Cookie=${COOKIE}\n"+
			"COOKIE: the header field Cookie, as z=…\nTOKEN: the header field Authorization")
	check(a+"--compressed -H 'accept-encoding: br'", "GET /a 1×200 accept-encoding=br")
	check(a+"--compressed --no-compressed --no-location -: http://a/b -d c",
		"GET /a 1×200\nPOST /b 1×200 [c] "+formBody)
	check(a+"-d x --next http://a/b", "POST /a 1×200 [x] "+formBody+"\nGET /b 1×200")
	check(a+"http://a/b -d x", "POST /a 1×200 [x] "+formBody+"\nPOST /b 1×200 [x] "+formBody)
	check(a+"-sSo/dev/null -w '%{http_code}' -m5 --retry 3", "GET /a 1×200")
	check(a+"-b '' -C 0 -c jar --max-time 5 --speed-time 5 --proto =http", "GET /a 1×200")
	check(`curl 'http://a/a/../b/./c//d/..'`, "GET /b/c// 1×200")
	check(`curl --path-as-is 'http://a/a/../b/.c'`, "GET /a/../b/.c 1×200")
	check(`curl 'http://a/\[1\]?{'`, left(Curl, "an address with [ ] or { }, of which curl makes "+
		"several; write each one, or -g if it is one"))
	check(`curl 'http://a/\[1\]'`, "GET /[1] 1×200")
	check(`curl -g 'http://[::1]:80/[1-3]'`, "GET /[1-3] 1×200")
	check("curl -- a/x?y=http://b/", "GET /x?y=http://b/ 1×200")
	check("curl --url-query a=b http://a/a > out.json", "GET /a?a=b 1×200")
	check(a+"-H 'X-Tag: a' -H 'X-Tag: b' -b a=1 -b c=2", "GET /a 1×200 X-Tag=a, b "+
		"Cookie=${COOKIE}\nCOOKIE: the header field Cookie, as a=…; c=…\n"+
		"~ 1: the lines of the header field X-Tag are joined with commas")
	check(a+"-H 'Host: shop.test'", "GET /a 1×200 Host=shop.test")
	check(a+"-kLA x --http2", "GET /a 1×200\n"+
		"~ 1: the option -k is not part of a request and is not taken\n"+
		"~ 1: the option --http2 is not part of a request and is not taken\n"+
		"~ 1: redirects are not followed (-L)\n"+
		"~ header fields of the client or the connection are not sent: user-agent")
}

// Commands that cannot be taken say why, and no value becomes an address.
func TestCurlRefuses(t *testing.T) {
	check := func(line, why string) {
		t.Helper()
		drafted(t, Curl)("curl http://a/a "+line, left(Curl, why))
	}
	const file = " from a file; write it as bodyFile"
	check("-d @f", "a body"+file)
	check("--json @f", "a body"+file)
	check("--data-binary @-", "a body"+file)
	check("--data-urlencode text@note.txt", "a body"+file)
	check("--data-urlencode @note.txt", "a body"+file)
	check("--url-query @note.txt", "a query"+file)
	check("-H @fields.txt", "header fields from a file (-H @)")
	check("-b jar.txt", "cookies from a file (-b)")
	check("--url @list", "addresses from a file (--url @)")
	check("--aws-sigv4 aws:amz:eu:s3 --user k:s", "a signature that curl computes (--aws-sigv4)")
	check("--digest -u a:b", "an authorization that curl computes (--digest)")
	check("-n", "credentials from a file (-n)")
	check("-sF a=@b", fileField)
	check("-F 'a=<b'", fileField)
	check("-F a", "a part of a form without = (-F)")
	check("-F 'a=(;type=multipart/mixed'", "a form whose parts have parts (-F)")
	check("-F 'a=b;filename=c'", "a part of a form with attributes other than type (-F)")
	check("-F a=b -d c", "a form of several parts with -d, -G or -I")
	check("-F a=b -H 'Content-Type: a/b'", "a media type of its own for a form of several parts")
	check("--expand-data '{{a}}'", "variables of curl (--expand-data)")
	check("--request-target /b", "a request target of its own (--request-target)")
	check("-C -", "a download that is resumed (-C)")
	check("-H $A", "a header field that is a variable (-H)")
	check("$A", "an address that is a variable")
	check("-X get", "the method get, which curl sends in small letters")
	check("-X PURGE", "the method PURGE, which suites do not have")
	check(`-d $'\xff'`, "bytes that are not UTF-8 in its body or its header fields")
	check("-I -d x", "-I with a body, which curl refuses")
	check("-X", "an option without its value (-X)")
	check("--no-such-flag 5", "option --no-such-flag, which curl 8 does not have")
	check("--no-data x", "option --no-data, which curl 8 does not have")
	check("--request=POST", "option --request=: curl takes a value as the next word")
	check("-@ x", "option -@, which curl 8 does not have")
	const word = "a word that is neither an option nor an address; quote values that have spaces"
	check("GET", word)
	check("'A: b'", word)
	check("http:/b", word)
	check("-H X: y", word)
	check("http://b:c/", word)
	check("'http://a/[1-3]'", "an address with [ ] or { }, of which curl makes several; write "+
		"each one, or -g if it is one")
	check("http://a/{1,2}", "braces that the shell expands: put them in quotes")
	check("“http://a/b”", "a typographic quote, dash or space, such as “: type it as ASCII")
	check("–d x", "a typographic quote, dash or space, such as “: type it as ASCII")
	check(`$'\ud83d'`, `half a character (such as \ud83d) in $'…'`)
}

// Variables and what a shell computes come from the environment.
func TestCurlVariables(t *testing.T) {
	check := drafted(t, Curl)
	const about = ": a variable that has no value in the file"
	const host = "\n~ 1: the host is a variable: the path is one of the service's"
	check("curl $BASE/a http://b/", "GET /a 1×200\nGET / 1×200"+host)
	check(`curl "http://$HOST:$PORT/a?b=$C"`, "GET /a?b=${C} 1×200\nC"+about+host)
	check("curl $URL", left(Curl, "an address that is a variable"))
	check("curl http://u:p@$HOST/", left(Curl, "a user before a variable host; write -u"))
	check("curl http://a/$(date +%s)/`id`/$(date +%s) -H \"Authorization: Bearer $(token)\"",
		"GET /${VALUE}/${VALUE_2}/${VALUE} 1×200 Authorization=Bearer ${VALUE_3}\n"+
			"VALUE"+about+"\nVALUE_2"+about+"\nVALUE_3: the header field Authorization")
	check("curl http://a/${A:-b} -d \"$1\"", "POST /${VALUE} 1×200 [${VALUE_2}] "+formBody+
		"\nVALUE"+about+"\nVALUE_2"+about)
}

// Lines for other shells, and what is around curl in a script.
func TestCurlShells(t *testing.T) {
	check := drafted(t, Curl)
	const want = `POST /a?x=1&y=2 1×200 Accept=*/* [{"a":1}] ` + formBody
	check(`curl ^"http://a/a?x=1^&y=2^" -H ^"Accept: */*^" --data-raw ^"^{^\^"a^\^":1^}^"`, want)
	check("curl \"http://a/a?x=1&y=2\" ^\r\n  -H \"Accept: */*\" ^\r\n  --data-raw "+
		`"{\"a\":1}"`+"\r\n", want)
	check("curl 'http://a/a?x=1&y=2' \\\r\n  -H 'Accept: */*' \\\r\n "+
		`--data-raw '{"a":1}'`+"\r\n", want)
	check("curl.exe \"http://a/a\" `\n  -H \"Accept: */*\"", "read f as curl: its lines end with "+
		"a backtick, as in PowerShell; copy the commands as cURL (bash)")
	check("A=b /usr/bin/curl http://a/a?b=1 & time curl 'http://a/b' | jq .", "GET /a?b=1 1×200\n"+
		"GET /b 1×200\n~ 1: a command that is not curl is not run")
	check("curl http://a/a?b=1&c=2", "read f as curl: every request was left out: 1: an & or ; "+
		"that is not in quotes: quote the address; add an example to the file, or pass only --url")
	check("curl http://a/a?b=1&&c=2; curl http://a/b;d=1\ncurl http://a/c;curl http://a/d",
		"GET /c 1×200\nGET /d 1×200\n- 2: an & or ; that is not in quotes: quote the address\n"+
			"~ 2: a command that is not curl is not run")
	check("C:\\x\\curl.EXE http://a:80/1 ^\nhttps://a:443/2\ncurl http://a/3 ^\nhttp://a:8080/",
		"GET /1 1×200\nGET /3 1×200\n- 2: of another host than http://a")
	check("for i in 1 2; do curl http://a/$i; done", "GET /${I} 1×200\n"+
		"I: a variable that has no value in the file")
	const fence = "```\n"
	check("I'd ask:\n"+fence+"$ curl http://a/1 \\\n  -d 'b\n\nc'\n"+fence+"It's {ok\n"+
		"curl isn't hard\n"+fence+"curl http://a/2\n"+fence, "POST /1 1×200 [b\n\nc] "+formBody+
		"\nGET /2 1×200\n- 1: a command whose end is not found, such as of a quote")
	// Apostrophes of prose that happen to pair up quote no commands.
	check("I'd ask:\n\n    curl http://a/1\n\nDon't, or\n$ curl http://a/2 \\\n  -H 'x: y'\n",
		"GET /1 1×200\nGET /2 1×200 x=y")
	check("curl -d $'\\ud83d\\ude00 \\041' http://a/", "POST / 1×200 [\U0001F600 !] "+formBody)
}
