package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/shellwords"
)

// takesValue are curl's options that are followed by a value and mean nothing to a load, by both of
// their names, beside those that command knows.
var takesValue = " -o --output -w --write-out -m --max-time --connect-timeout -x --proxy -U " +
	"--proxy-user --cacert --cert -E --key --resolve --retry --retry-delay --retry-max-time -c " +
	"--cookie-jar -D --dump-header --limit-rate --interface -r --range --max-redirs -K --config " +
	"--unix-socket --ciphers --tls-max -T --upload-file -F --form --form-string -y -Y -z " +
	"--time-cond -C --continue-at --dns-servers --local-port --noproxy --connect-to --stderr " +
	"--trace --trace-ascii --cert-type --key-type --pass --capath -P --ftp-port -Q --quote "

// refused are options without which the request would be another one.
var refused = map[string]string{"-F": "a multipart form, which suites do not support",
	"--form": "a multipart form, which suites do not " +
		"support", "--form-string": "a multipart form, which suites do not " +
		"support",
	"-T": "an upload", "--upload-file": "an upload",
	"-K": "a separate curl configuration file", "--config": "a separate curl configuration file",
	"-r": "a request for a range of bytes", "--range": "a request for a range of bytes"}

func (d *Draft) readCurl(_ string, data []byte) error {
	commands, err := shellwords.Commands(string(data), func(name string) string {
		return hole(strings.ToUpper(name))
	})
	if err != nil {
		return fmt.Errorf("%w; paste the whole curl command", err)
	}
	for _, c := range commands {
		if len(c) > 0 && c[0] == "$" {
			c = c[1:]
		}
		if len(c) == 0 || c[0] != "curl" && c[0] != "curl.exe" {
			if len(c) > 0 {
				d.leave("a command that is not curl")
			}
			continue
		}
		d.Found++
		requests, why := command(c[1:])
		if why != "" {
			d.leave(why)
			continue
		}
		for _, r := range requests {
			if nul(holeRe.ReplaceAllString(r.url+r.body, "")) {
				d.leave("a request whose text contains a NUL character")
				continue
			}
			d.add(r)
		}
	}
	if d.Found == 0 {
		return errors.New("no line begins with curl; paste a command from the browser's " +
			"developer tools (Copy as cURL)")
	}
	return nil
}

// line is a curl command as far as it was read.
type line struct {
	raw
	urls      []string
	data      []string
	query     bool // -G: the data is the query
	head      bool
	why       string
	plainOnly bool // the rest are addresses
}

// command reads the words after curl. It says why the command cannot be taken, or gives a request
// for each of its addresses.
func command(args []string) (out []raw, why string) {
	var l line
	for i := 0; i < len(args); i++ {
		a := args[i]
		if l.plainOnly || !strings.HasPrefix(a, "-") || a == "-" {
			l.urls = append(l.urls, a)
			continue
		}
		if a == "--" {
			l.plainOnly = true
			continue
		}
		name, value, ok := a, "", false
		if strings.HasPrefix(a, "--") {
			name, value, ok = strings.Cut(a, "=")
		} else if len(a) > 2 { // -XPOST, -sS, -sXPOST
			name = a[:2]
			if value = a[2:]; !wants(name) {
				args[i] = "-" + value
				i--
				l.flag(name)
				continue
			}
			ok = true
		}
		if !wants(name) {
			l.flag(name)
			continue
		}
		if !ok {
			if i++; i >= len(args) {
				return nil, "a curl option without its value"
			}
			value = args[i]
		}
		l.option(name, value)
	}
	return l.requests()
}

const known = " -X --request -H --header -d --data --data-raw --data-ascii --data-binary " +
	"--data-urlencode --json -u --user -A --user-agent -b --cookie -e --referer --url " +
	"--oauth2-bearer "

func wants(name string) bool { return strings.Contains(known+takesValue, " "+name+" ") }

// flag takes an option without a value.
func (l *line) flag(name string) {
	switch name {
	case "-G", "--get":
		l.query = true
	case "-I", "--head":
		l.head = true
	case "--compressed":
		l.headers = append(l.headers, Field{"Accept-Encoding", "gzip"})
	}
}

// option takes one with its value.
func (l *line) option(name, value string) {
	body := func(kind string) {
		if strings.HasPrefix(value, "@") && name != "--data-raw" {
			l.why = "a request body from a file; set bodyFile in prony.yaml instead"
		}
		l.data = append(l.data, value)
		if l.kind == "" {
			l.kind = kind
		}
	}
	const formType = "application/x-www-form-urlencoded"
	switch name {
	case "-X", "--request":
		l.method = value
	case "-H", "--header":
		if n, v, ok := strings.Cut(value, ":"); ok && strings.TrimSpace(v) != "" {
			l.headers = append(l.headers, Field{n, v})
		}
	case "-d", "--data", "--data-raw", "--data-ascii", "--data-binary":
		body(formType)
	case "--data-urlencode":
		n, v, ok := strings.Cut(value, "=")
		if !ok {
			n, v = "", value
		}
		if value = formWord(v); n != "" {
			value = n + "=" + value
		}
		body(formType)
	case "--json":
		body("application/json")
		if !slices.ContainsFunc(l.headers, isField("accept")) {
			l.headers = append(l.headers, Field{"Accept", "application/json"})
		}
	case "-u", "--user":
		l.headers = append(l.headers, Field{"Authorization", "Basic " + value})
	case "--oauth2-bearer":
		l.headers = append(l.headers, Field{"Authorization", "Bearer " + value})
	case "-b", "--cookie":
		l.headers = append(l.headers, Field{"Cookie", value})
	case "--url":
		l.urls = append(l.urls, value)
	default:
		if subject := refused[name]; subject != "" {
			l.why = subject + " (" + name + ")"
		}
	}
}

func (l *line) requests() (out []raw, why string) {
	if l.why != "" {
		return nil, l.why
	}
	if len(l.urls) == 0 {
		return nil, "a curl command without a URL"
	}
	for _, u := range l.urls {
		r := l.raw
		if r.url = u; !strings.Contains(u, "://") {
			r.url = "http://" + u // as curl does
		}
		for _, f := range l.headers {
			if strings.EqualFold(f.Name, "content-type") {
				r.kind = strings.TrimSpace(f.Value)
			}
		}
		switch data := strings.Join(l.data, "&"); {
		case l.query && data != "":
			sign := "?"
			if strings.Contains(r.url, "?") {
				sign = "&"
			}
			r.url += sign + data
		case data != "":
			if r.body = data; r.method == "" {
				r.method = "POST"
			}
		}
		if l.head && r.method == "" {
			r.method = "HEAD"
		}
		out = append(out, r)
	}
	return out, ""
}
