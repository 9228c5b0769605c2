package importer

import (
	"strings"
	"testing"
)

// The length of a body says whether a recorder has unescaped the fields of a form.
func TestHAREscapedFields(t *testing.T) {
	check := func(value, size string, want ...string) {
		t.Helper()
		checkTold(t, Options{}, `{"log": {"entries": [{"request": {"method": "POST", "url":
"http://shop.test/a", "bodySize": `+size+`, "postData": {"mimeType": "`+formBody+`", "params":
[{"name": "a", "value": "`+value+`"}]}}}]}}`, want...)
	}
	const sent = "] " + formBody
	check("b%3Ac", "7", "POST /a [a=b%3Ac"+sent)
	check("b:c", "7", "POST /a [a=b%3Ac"+sent)
	check("b:c", "5", "POST /a [a=b:c"+sent)
	check("b%3Ac", "9", "POST /a [a=b%253Ac"+sent)
	check("", "1", "POST /a [a] "+formBody)
	check("b:c", "-1", "POST /a [a=b%3Ac"+sent)
	check("b c", "7", "POST /a [a=b+c"+sent,
		"~1: the body of a form is made of its fields, which were sent with other escapes")
}

// Values of fields may have their type beside them, as WebDriver BiDi writes them.
func TestHARTypedValues(t *testing.T) {
	checkTold(t, Options{}, `{"log": {"entries": [{"request": {"url": "http://shop.test/a",
"headers": [
{"name": "Host", "value": {"type": "string", "value": "shop.test"}},
{"name": "X-A", "value": {"type": "string", "value": "b"}},
{"name": "X-B", "value": {"a": 1}}]}}]}}`, `GET /a X-A=b X-B={"a":1}`)
}

// An archive or a collection that is cut says so.
func TestBrokenJSON(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		drafted(t, "")(text, "read f: "+want)
	}
	check(`{"log": {"entries": [{"request": {`, "it is not JSON from byte 34 on; save it again")
	check(`{"info": {}, "item": [}`, "it is not JSON from byte 23 on; save it again")
	check("{\"a\": 1}\n{\"a\": 2}\n", "it looks like none of openapi, har, curl, postman, log; "+
		"name its kind with --as")
	check("a [27/Nov/2026:10:00:00 +0000] - 200 GET http h \"/a\"\n", "it is an access log of "+
		"another format; write it in the combined format")
}

// Commands of other tools' exports, and bodies that a script has.
func TestCurlScripts(t *testing.T) {
	check := drafted(t, "")
	check("curl 'http://a/a?b[]=1&b[]=2'", "GET /a?b[]=1&b[]=2 1×200")
	check("curl http://a/a -H 'Content-Type: multipart/form-data; boundary=---01' -F b=c",
		"POST /a 1×200 "+formOf("b", "c")+"\n~ 1: of the media type of a form, a "+
			"boundary alone is sent; curl adds one to those parameters that -H has")
	for _, line := range []string{"x=$(curl -s http://a/a)", "sudo curl http://a/a",
		"% curl -s 'http://a/a'", "if ! curl -f http://a/a; then exit 1; fi"} {
		d, err := Options{}.Read("f", []byte(line))
		if err != nil || len(d.Requests) != 1 || d.Requests[0].Path != "/a" {
			t.Errorf("%s: %+v, %v", line, d, err)
		}
	}
	const post = "POST /a 1×200 "
	const in = " http://a/a -H 'Content-Type: application/json' "
	check("curl"+in+"-d @- <<'EOF'\n{\"a\": \"$B\\n\",\n \"c\": 1}\nEOF\n",
		post+`[{"a": "$B\n", "c": 1}] `+jsonBody)
	check("curl"+in+"--data-binary @- <<EOF\n{\"a\": \"\\\"$B\\$\"}\nEOF\ncurl http://a/b",
		post+"[{\"a\": \"\\\"${B}$\"}\n] "+jsonBody+"\nGET /b 1×200\n"+
			"B: a variable that has no value in the file")
	check("curl"+in+"-d @- <<-X\n\t\tb\n\tX\n", post+"[b] "+jsonBody)
	check("curl"+in+"--json @- <<<'b c'", post+"Accept=application/json [b c\n] "+jsonBody)
	check("cat <<E | curl"+in+"-d @-\nb\nE\n", post+"[b] "+jsonBody+
		"\n~ 1: a command that is not curl is not run")
	check("jq . a | curl"+in+"-d @-", left(Curl, "a body from a file; write it as bodyFile"))
}

// A variable that the script assigns once is its text; others have no value, and neither have
// secrets.
func TestCurlAssignments(t *testing.T) {
	check := drafted(t, Curl)
	const run = "\n~ 1: a command that is not curl is not run"
	check("A=http://a/v1\ncurl $A/a", "GET /v1/a 1×200"+run)
	check("export A='http://a/v1' B=\"$A/b\"\nf() { curl -s \"${B}/c?d\"; }", "GET /v1/b/c?d 1×200")
	check("A=${1:-http://a/v1}\ncurl ${A}/a", "GET /v1/a 1×200"+run)
	check(`export D='{"a": "b c"}'`+"\ncurl http://a/a -d \"$D\"",
		`POST /a 1×200 [{"a": "b c"}] `+formBody)
	check("export D='b c'\ncurl http://a/a -d@- <<E\n$D\nE", "POST /a 1×200 [b c] "+formBody)
	const variable = "~ 1: the host is a variable: the path is one of the service's"
	for _, script := range []string{"A=http://a/v1; A=http://a/v2\ncurl $A/a", "A+=/v1\ncurl $A/a",
		"A=$(cat a)\ncurl $A/a", "A=(b c)\ncurl $A/a", "A=http://a/v1 curl $A/a", "A='b c'\ncurl $A/a",
		"A=b; read A\ncurl $A/a", "A=b\nfor A in b c; do curl $A/a; done"} {
		d, err := Options{Kind: Curl}.Read("f", []byte(script))
		if got := sent(d, err); !strings.HasPrefix(got, "GET /a 1×200\n") ||
			!strings.Contains(got, variable) {
			t.Errorf("%s: %s", script, got)
		}
	}
	check("export A=$B/v1\ncurl $A/a", "GET /v1/a 1×200\n"+variable)
	check("export TOKEN=12345678\ncurl http://a/a -d a=$TOKEN", "POST /a 1×200 [a=${TOKEN}] "+
		formBody+"\nTOKEN: a variable that has no value in the file")
}

// Lines of logs with something before a JSON object, and common ones of other orders.
func TestLogOrders(t *testing.T) {
	check := func(text, want, arrivals string) {
		t.Helper()
		drafted(t, "")(text, want)
		d, err := Options{}.Read("f", []byte(text))
		if err == nil && d.Span != arrivals {
			t.Errorf("%s\nspan %s, want %s", text, d.Span, arrivals)
		}
	}
	const request = `"request": {"method": "GET", "host": "a", "uri": "/a"}, "status": 200}` + "\n"
	const caddy = "\tinfo\thttp.log.access\thandled request\t{" + request
	check("2026/11/27 10:00:00.5"+caddy+"2026/11/27 10:00:02.0"+caddy, "GET /a 2×200", "2s")
	check("2026-11-27T10:00:00.1Z stdout F {"+request+"2026-11-27T10:00:03.1Z stdout F {"+request,
		"GET /a 2×200", "4s")
	check(`web_1  | {"ts": 1795773600, `+request+`web_1  | {"ts": 1795773602, `+request,
		"GET /a 2×200", "3s")
	const pino = `"req":{"method":"GET","url":"/a?b=1"},"res":{"statusCode":200}}` + "\n"
	check(`{"time":1795773600250,`+pino+`{"time":1795773603250,`+pino, "GET /a?b=1 2×200", "4s")
	check(`{"timestamp":"2026-11-27T10:00:00.1Z","httpRequest":{"requestMethod":"GET",`+
		`"requestUrl":"https://a/b?c","status":200}}`, "GET /b?c 1×200", "")
	const a = `192.0.2.4 - - [27/Nov/2026:10:00:0`
	check(a+`0.250 +0000] "GET /a HTTP/1.1" 200 5`+"\n"+a+`1,750 +0000] "GET /a HTTP/1.1" 200 5`,
		"GET /a 2×200", "2s")
	check(a+`0 +0000]  200 "GET /a HTTP/1.1" 404 "-"`, "GET /a 1×200", "")
	check(`[27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" "200" 5`, "GET /a 1×200", "")
}

// A percent sign that begins no escape is escaped, and the change is reported.
func TestLonePercent(t *testing.T) {
	const note = "\n~ 1: a % that begins no escape is sent as %25"
	check := drafted(t, "")
	check("curl 'http://a/a%20b%?c=100%&d=%zz%4'", "GET /a%20b%25?c=100%25&d=%25zz%254 1×200"+note)
	check("curl http://a/%C8%cb", "GET /%C8%cb 1×200")
	check(`192.0.2.4 - - [27/Nov/2026:10:00:00 +0000] "GET /a?b=5% HTTP/1.1" 200 5`,
		"GET /a?b=5%25 1×200"+note)
}
