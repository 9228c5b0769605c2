package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

var (
	curlLine = regexp.MustCompile(`(?m)^[$ \t]*curl(\.exe)?[ \t]`)
	// curlCall is a command within a line, such as after sudo or in $(…).
	curlCall = regexp.MustCompile("(?m)(^|[\\s$%(;&|`])curl(\\.exe)?[ \t]+(-|['\"]?https?://)")
	openKey  = regexp.MustCompile(`(?m)^( *)(?:\{\s*)?["']?(openapi|swagger)["']?[ \t]*:`)
	// outermost begins the first line of YAML that is neither a comment nor a mark.
	outermost = regexp.MustCompile(`^(?:[ \t]*(?:#.*|---.*|%.*)?\r?\n)*( *)`)
)

// foreign are forms of content that no kind has, by what to do.
var foreign = []struct {
	hint string
	form *regexp.Regexp
}{
	{"it is PowerShell; copy the commands as cURL (bash)", regexp.MustCompile(
		`(?m)^[^'"\n]*\b(Invoke-WebRequest|Invoke-RestMethod|iwr|irm) `)},
	{"it is JavaScript (fetch); copy the requests as cURL (bash)", regexp.MustCompile(
		`(?m)^(await |return )?fetch\(["']`)},
	{"it is a W3C extended log without cs-method, cs-uri-stem and sc-status in #Fields",
		regexp.MustCompile(`(?m)^#Fields: `)},
	{"it is an environment of Postman; name the collection", regexp.MustCompile(
		`"_postman_variable_scope"`)},
	{"it is all data of Postman; export one collection as Collection v2.1", regexp.MustCompile(
		`(?s)^\s*\{.*"collections"\s*:\s*\[.*"environments"\s*:`)},
	{"it is an export of Insomnia; export it as HAR", regexp.MustCompile(
		`"__export_format"|(?m)^type: collection\.insomnia\.rest`)},
	{"it is a plan of JMeter; record its requests as HAR", regexp.MustCompile(
		`<jmeterTestPlan`)},
	{"it is AsyncAPI, which describes messages instead of requests", regexp.MustCompile(
		`(?m)^[{ \t]*["']?asyncapi["']?[ \t]*:`)},
	{"it is a log of JSON lines; write it in the combined format", regexp.MustCompile(
		`^\{[^\n]*"(status|method|uri|request)"[^\n]*\}\s*\n\{`)},
	{"it is an access log of another format; write it in the combined format", regexp.MustCompile(
		`"(GET|HEAD|POST) [^"\n]+ HTTP/\d|\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:`)},
}

// recognise says what the content looks like; "": nothing that is known.
func recognise(data []byte) string {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("{")) {
		var top struct {
			OpenAPI, Swagger any
			Log              *struct{ Entries json.RawMessage }
			Item, Requests   json.RawMessage // of Postman, now and in version 1
			Collection       *struct{ Item json.RawMessage }
		}
		if json.Unmarshal(data, &top) == nil {
			switch {
			case top.OpenAPI != nil || top.Swagger != nil:
				return OpenAPI
			case top.Log != nil && top.Log.Entries != nil:
				return HAR
			case top.Item != nil || top.Requests != nil,
				top.Collection != nil && top.Collection.Item != nil:
				return Postman
			case isLog(data):
				return Log
			}
			return ""
		}
	}
	switch {
	case isLog(data):
		return Log
	case isOpenAPI(data):
		return OpenAPI
	case curlLine.Match(data):
		return Curl
	}
	return ""
}

// unknown is the error of content that looks like no kind; nil: it calls curl within its lines.
func unknown(data []byte) error {
	for _, f := range foreign {
		if f.form.Match(data) {
			return errors.New(f.hint)
		}
	}
	var value json.RawMessage
	if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte("{")) {
		err := json.NewDecoder(bytes.NewReader(data)).Decode(&value)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = &json.SyntaxError{Offset: int64(len(data))}
		}
		if err != nil {
			return broken(err)
		}
	}
	if curlCall.Match(data) {
		return nil
	}
	return fmt.Errorf("it looks like none of %s; name its kind with --as",
		strings.Join(Kinds, ", "))
}

// isOpenAPI says whether YAML has the version of a document among its outermost keys.
func isOpenAPI(data []byte) bool {
	indent := outermost.FindSubmatch(data)[1]
	return slices.ContainsFunc(openKey.FindAllSubmatch(data, -1), func(m [][]byte) bool {
		return bytes.Equal(m[1], indent)
	})
}
