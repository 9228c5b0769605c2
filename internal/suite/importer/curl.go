package importer

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/shellwords"
)

// blockMax bounds the lines of a command within a text that is not a script.
const blockMax = 100

// wrappers are words before curl that leave its request as it is: prompts and other commands.
var wrappers = []string{"$", "%", "time", "sudo", "command", "exec", "env", "nohup"}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	curlName   = regexp.MustCompile(`(?i)^(.*[/\\])?curl(\.exe)?$`)
	simpleName = regexp.MustCompile(`^\$\{?([A-Za-z_]\w*)\}?$`)
	anyName    = regexp.MustCompile(`\w+`) // the first in an expansion
	continued  = regexp.MustCompile(`[\\^]\r?\n?$`)
	powerShell = regexp.MustCompile("(?m)^.*\\bcurl\\b.*[ \t]`\r?$")
)

func (d *Draft) readCurl(_ string, data []byte) error {
	if powerShell.Match(data) {
		return errors.New("its lines end with a backtick, as in PowerShell; copy the commands as " +
			"cURL (bash)")
	}
	computed := map[string]string{} // holes of expansions, by source
	commands, err := commandsOf(string(data), func(source, value string) string {
		if value != "" && !isSecret(anyName.FindString(source)) {
			return value
		}
		if m := simpleName.FindStringSubmatch(source); m != nil {
			return hole(strings.ToUpper(m[1]))
		}
		if computed[source] == "" {
			name := "VALUE"
			if n := len(computed); n > 0 {
				name = fmt.Sprintf("VALUE_%d", n+1)
			}
			computed[source] = hole(name)
		}
		return computed[source]
	})
	if err != nil {
		return fmt.Errorf("%w; paste the whole curl command", err)
	}
	for _, c := range commands {
		if words := unwrapped(c.Words); len(words) > 0 && !curlName.MatchString(words[0]) ||
			len(words) == 0 && len(c.Words) > 0 && len(c.Inside) == 0 {
			d.change("a command that is not curl is not run", 1)
		}
		for _, c := range append(c.Inside, c) {
			words := unwrapped(c.Words)
			switch {
			case len(words) == 0 || !curlName.MatchString(words[0]):
			case c.Problem != "":
				d.Found++
				d.leave(c.Problem)
			default:
				d.command(words[1:], c)
			}
		}
	}
	if d.Found == 0 {
		return errors.New("no line begins with curl; paste a command from the browser's " +
			"developer tools (Copy as cURL)")
	}
	return nil
}

// commandsOf are the commands of a script. A text that is none, such as Markdown, has those that
// begin a line with curl, each to its end.
func commandsOf(text string, expansion func(source, value string) string) (
	out []shellwords.Command, err error) {
	out, err = shellwords.Commands(text, expansion)
	if err == nil && calls(out) >= len(curlLine.FindAllString(text, -1)) {
		return out, nil
	}
	script := out // in which apostrophes of prose can quote lines of curl
	out = nil
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !curlLine.MatchString(lines[i]) {
			continue
		}
		block := ""
		for j := i; j < min(i+blockMax, len(lines)) && !strings.HasPrefix(lines[j], "```") &&
			(j == i || !curlLine.MatchString(lines[j])); j++ {
			block += lines[j]
			found, failed := shellwords.Commands(block, expansion)
			if failed == nil && !continued.MatchString(lines[j]) {
				out, block, i = append(out, found...), "", j
				break
			}
		}
		if block != "" {
			out = append(out, shellwords.Command{Words: []string{"curl"},
				Problem: "a command whose end is not found, such as of a quote"})
		}
	}
	if calls(out) <= calls(script) {
		return script, err
	}
	return out, nil
}

// calls counts the commands that call curl and have no problem.
func calls(commands []shellwords.Command) (n int) {
	for _, c := range commands {
		words := unwrapped(c.Words)
		if c.Problem == "" && len(words) > 0 && curlName.MatchString(words[0]) {
			n++
		}
	}
	return n
}

// unwrapped returns the words of a command without variables and wrappers in front of it.
func unwrapped(words []string) []string {
	for len(words) > 0 && (assignment.MatchString(words[0]) ||
		slices.Contains(wrappers, words[0])) {
		words = words[1:]
	}
	return words
}

// command takes the words after curl: a request for each address, and each --next.
func (d *Draft) command(words []string, c shellwords.Command) {
	for {
		l := line{input: c.Input}
		for len(words) > 0 && !l.ended {
			words = l.take(words)
		}
		requests := l.requests()
		if l.why != "" {
			d.Found++
			d.leave(l.why)
		} else {
			d.Found += len(requests)
			for _, r := range requests {
				if nul(holeRe.ReplaceAllString(r.url+r.body, "")) {
					d.leave("a NUL in its text")
					continue
				}
				d.add(r)
			}
		}
		if !l.ended {
			return
		}
	}
}

// line is a curl command as far as it was read.
type line struct {
	method, scheme string
	custom         []Field  // by -H
	removed        []string // header fields that -H takes away
	generated      []Field  // by other options
	urls           []string
	data           strings.Builder
	posted, json   bool   // there is data, or data of --json
	parts          []part // of -F
	query          []string
	cookies        []string
	changes        []string
	why            string   // the command cannot be taken
	input          []string // of the command: see shellwords.Command

	get, head, compressed, globOff, pathAsIs bool
	redirects                                bool
	plainOnly                                bool // the rest are addresses
	ended                                    bool // by --next
}

func (l *line) refuse(why string) { l.why = cmp.Or(l.why, why) }

// take takes the first word, with its value, and returns the others.
func (l *line) take(words []string) []string {
	word, words := words[0], words[1:]
	switch {
	case l.plainOnly || !strings.HasPrefix(word, "-") || word == "-":
		l.urls = append(l.urls, word)
		return words
	case word == "--":
		l.plainOnly = true
		return words
	case strings.HasPrefix(word, "--"):
		return l.option(word, words)
	}
	for letters := word[1:]; letters != ""; { // -XPOST, -sS, -sXPOST
		name := "-" + letters[:1]
		letters = letters[1:]
		if curlOptions[name].value && letters != "" {
			return l.option(name, slices.Insert(slices.Clone(words), 0, letters))
		}
		words = l.option(name, words)
	}
	return words
}

// option takes an option, whose value is the first of the words if it has one.
func (l *line) option(name string, words []string) []string {
	o, known := curlOptions[name]
	positive, negated := strings.CutPrefix(name, "--no-")
	if negated && !known {
		if o, known = curlOptions["--"+positive]; o.value {
			known = false
		}
	}
	expanded := strings.HasPrefix(name, "--expand-")
	switch {
	case name == "--next" || name == "-:":
		l.ended = true
		return words
	case !known && !expanded:
		l.unknown(name)
		return words
	case o.effect == refused && !negated || expanded:
		l.refuse(cmp.Or(o.refusal, "variables of curl") + " (" + name + ")")
	case o.effect == connection:
		l.changes = append(l.changes, "the option "+name+" is not part of a request and is not "+
			"taken")
	}
	if !o.value && !expanded {
		l.flag(o.name, !negated)
		return words
	}
	if len(words) == 0 {
		l.refuse("an option without its value (" + name + ")")
		return nil
	}
	if o.effect == applied {
		l.apply(o.name, words[0])
	}
	return words[1:]
}

func (l *line) unknown(name string) {
	if option, _, with := strings.Cut(name, "="); with {
		l.refuse("option " + oneLine(option) + "=: curl takes a value as the next word")
		return
	}
	l.refuse("option " + oneLine(strings.ToValidUTF8(name, "?")) + ", which curl 8 does not have")
}

// flag takes an option without a value.
func (l *line) flag(name string, enabled bool) {
	switch name {
	case "get":
		l.get = enabled
	case "head":
		l.head = enabled
	case "compressed":
		l.compressed = enabled
	case "globoff":
		l.globOff = enabled
	case "path-as-is":
		l.pathAsIs = enabled
	case "location", "location-trusted", "follow":
		l.redirects = enabled
	}
}

// apply takes an option with its value.
func (l *line) apply(name, value string) {
	generate := func(name, value string) {
		l.generated = slices.DeleteFunc(l.generated, isField(name))
		l.generated = append(l.generated, Field{name, value})
	}
	switch name {
	case "request":
		l.method = value
	case "header":
		l.header(value)
	case "data", "data-ascii", "data-binary", "data-raw", "json", "data-urlencode":
		l.post(name, value)
	case "form", "form-string":
		l.part(value, name == "form-string")
	case "url-query":
		if raw, is := strings.CutPrefix(value, "+"); is {
			l.query = append(l.query, raw)
		} else {
			l.query = append(l.query, l.encoded(value, "a query"))
		}
	case "user":
		generate("Authorization", "Basic "+value)
	case "oauth2-bearer":
		generate("Authorization", "Bearer "+value)
	case "user-agent":
		generate("User-Agent", value)
	case "referer":
		generate("Referer", strings.TrimSuffix(value, ";auto"))
	case "range":
		if !strings.ContainsAny(value, "-,") { // a number alone begins a range
			value += "-"
		}
		generate("Range", "bytes="+value)
	case "continue-at":
		if value != "0" {
			l.refuse("a download that is resumed (-C)")
		}
	case "cookie":
		if value != "" && !strings.Contains(value, "=") && !nul(value) {
			l.refuse("cookies from a file (-b)")
		} else if value != "" {
			l.cookies = append(l.cookies, value)
		}
	case "url":
		if strings.HasPrefix(value, "@") {
			l.refuse("addresses from a file (--url @)")
		}
		l.urls = append(l.urls, value)
	case "proto-default":
		l.scheme = value
	}
}

// header takes a -H: a field, one without a value (Name;), or one that is not sent (Name:).
func (l *line) header(value string) {
	name, content, ok := strings.Cut(value, ":")
	empty, semicolon := strings.CutSuffix(value, ";")
	switch {
	case strings.HasPrefix(value, "@"):
		l.refuse("header fields from a file (-H @)")
	case ok && strings.TrimSpace(content) == "":
		l.removed = append(l.removed, strings.TrimSpace(name))
	case ok:
		l.custom = append(l.custom, Field{name, content})
	case nul(value):
		l.refuse("a header field that is a variable (-H)")
	case semicolon:
		l.custom = append(l.custom, Field{empty, ""})
	}
}

// post takes data. It is joined by &, but for JSON, whose pieces follow each other.
func (l *line) post(option, value string) {
	switch {
	case option == "data-urlencode":
		value = l.encoded(value, "a body")
	case option != "data-raw" && value == "@-" && l.input != nil:
		value, l.input = l.input[0], []string{""}
		if option == "data" || option == "data-ascii" {
			value = strings.NewReplacer("\r", "", "\n", "").Replace(value)
		}
	case option != "data-raw" && strings.HasPrefix(value, "@"):
		l.refuse("a body from a file; write it as bodyFile")
	}
	l.json = l.json || option == "json"
	if l.posted && option != "json" {
		l.data.WriteByte('&')
	}
	l.posted = true
	l.data.WriteString(value)
}

// part takes NAME=CONTENT of a form. Unless it is literal, content that begins with @ or < names a
// file, and attributes such as ;type=text/plain follow it.
func (l *line) part(value string, literal bool) {
	name, content, ok := strings.Cut(value, "=")
	p := part{name: name, value: content}
	switch {
	case !ok:
		l.refuse("a part of a form without = (-F)")
	case literal:
	case strings.HasPrefix(content, "@") || strings.HasPrefix(content, "<"):
		l.refuse(fileField)
	case strings.HasPrefix(content, "(") || name == "":
		l.refuse("a form whose parts have parts (-F)")
	default:
		m := partContent.FindStringSubmatch(content)
		if m == nil {
			l.refuse("a part of a form with attributes other than type (-F)")
			break
		}
		p.kind, p.value = m[3], m[2]
		if m[2] == "" {
			p.value = backslashed.ReplaceAllString(m[1], "$1")
		}
	}
	l.parts = append(l.parts, p)
}

var (
	// partContent is the content of a part, in quotes or not, and its type.
	partContent = regexp.MustCompile(`^\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^;"\s][^;]*?)?))\s*` +
		`(?:;\s*type=([^;"\s]+))?\s*$`)
	backslashed = regexp.MustCompile(`\\(["\\])`)
)

// encoded escapes CONTENT, =CONTENT or NAME=CONTENT; NAME@FILE is refused.
func (l *line) encoded(value, subject string) string {
	name, content, named := strings.Cut(value, "=")
	switch {
	case !named && strings.Contains(value, "@"):
		l.refuse(subject + " from a file; write it as bodyFile")
	case !named:
		return formWord(value)
	case name == "":
		return formWord(content)
	}
	return name + "=" + formWord(content)
}

// requests are those of the command; why says if it has none.
func (l *line) requests() (out []raw) {
	if len(l.urls) == 0 && l.why == "" {
		l.refuse("a curl command without a URL")
	}
	if l.method != strings.ToUpper(l.method) {
		l.refuse("the method " + oneLine(l.method) + ", which curl sends in small letters")
	}
	if l.head && l.posted && !l.get {
		l.refuse("-I with a body, which curl refuses")
	}
	if l.posted && !l.get && slices.ContainsFunc(l.generated, isField("range")) {
		l.refuse("a range of bytes with a body")
	}
	if len(l.parts) > 0 && (l.posted || l.get || l.head) {
		l.refuse("a form of several parts with -d, -G or -I")
	}
	if l.redirects {
		l.changes = append(l.changes, "redirects are not followed (-L)")
	}
	method, data := cmp.Or(l.method, "GET"), l.data.String()
	switch {
	case l.method != "":
	case l.head:
		method = "HEAD"
	case l.posted && !l.get || len(l.parts) > 0:
		method = "POST"
	}
	if len(l.parts) > 0 {
		var kind string
		data, kind = multipartForm(l.parts)
		l.custom = slices.DeleteFunc(l.custom, func(f Field) bool { // curl adds its boundary
			media, parameters, _ := strings.Cut(f.Value, ";")
			ofForm := strings.EqualFold(f.Name, "content-type") &&
				strings.EqualFold(strings.TrimSpace(media), "multipart/form-data")
			if ofForm && strings.TrimSpace(parameters) != "" {
				l.changes = append(l.changes, "of the media type of a form, a boundary alone is "+
					"sent; curl adds one to those parameters that -H has")
			}
			return ofForm
		})
		if slices.ContainsFunc(l.custom, isField("content-type")) {
			l.refuse("a media type of its own for a form of several parts")
		}
		l.generated = append(l.generated, Field{"Content-Type", kind})
	}
	query := strings.Join(l.query, "&")
	if l.get { // its data is the query, and curl sends no other
		query, data = cmp.Or(data, query), ""
	}
	changes := slices.Clip(l.changes)
	for _, u := range l.urls {
		l.changes = changes
		r := raw{method: method, url: l.address(u, query), body: data,
			headers: l.fields(l.posted && !l.get)}
		r.changes = l.changes
		for _, f := range r.headers {
			if strings.EqualFold(f.Name, "content-type") {
				r.kind = strings.TrimSpace(f.Value)
			}
		}
		out = append(out, r)
	}
	return out
}

// fields are the header fields. Those of -H are sent in place of others of their name.
func (l *line) fields(withBody bool) []Field {
	generated := slices.Clone(l.generated)
	if len(l.cookies) > 0 {
		generated = append(generated, Field{"Cookie", strings.Join(l.cookies, "; ")})
	}
	if l.compressed && !slices.ContainsFunc(l.custom, isField("accept-encoding")) {
		generated = append(generated, Field{"Accept-Encoding", "gzip"})
		l.changes = append(l.changes, "of the encodings that --compressed accepts, gzip alone is "+
			"asked for")
	}
	switch {
	case l.json: // also with -G
		generated = append(generated, Field{"Content-Type", "application/json"})
	case withBody:
		generated = append(generated, Field{"Content-Type", "application/x-www-form-urlencoded"})
	}
	if l.json {
		generated = append(generated, Field{"Accept", "application/json"})
	}
	out := slices.Clone(l.custom)
	for _, f := range generated {
		lost := func(name string) bool { return strings.EqualFold(name, f.Name) }
		if !slices.ContainsFunc(l.custom, isField(f.Name)) &&
			!slices.ContainsFunc(l.removed, lost) {
			out = append(out, f)
		}
	}
	return out
}

var (
	schemed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// hostLike is a host with or without a port; holes may be in it.
	hostLike = regexp.MustCompile("^(\\[[0-9A-Fa-f:.]+(%[\\w.%-]+)?\\]|" +
		"[\\w.~%\x00\\x{80}-\\x{10ffff}-]+)(:(\\d+|\x00\\w+\x00))?$")
	bracketed = regexp.MustCompile(`^([A-Za-z]+://)?([^/?#]*@)?\[[0-9A-Fa-f:.]+(%[\w.%-]+)?\]`)
	// globbed is what curl expands, or takes a backslash from; [] stays (tool_urlglob.c).
	globbed = regexp.MustCompile(`\\[\[\]{}]|\[\]|[\[\]{}]`)
)

// address is the address that curl asks for a word of the command, with the query added.
func (l *line) address(word, query string) string {
	if !l.globOff {
		head := bracketed.FindString(word) // an IPv6 address
		word = head + globbed.ReplaceAllStringFunc(word[len(head):], func(s string) string {
			if s == "[]" {
				return s
			}
			if len(s) == 1 {
				l.refuse("an address with [ ] or { }, of which curl makes several; write each " +
					"one, or -g if it is one")
			}
			return s[len(s)-1:]
		})
	}
	scheme := schemed.FindString(word)
	tail := word[len(scheme):]
	end := strings.IndexAny(tail+"/", "/?#")
	host, tail := tail[:end], tail[end:]
	_, name, user := strings.Cut(host, "@")
	if !user {
		name = host
	}
	if !hostLike.MatchString(name) || scheme == "" && len(l.urls) > 1 && name != "localhost" &&
		!strings.ContainsAny(word, ".:/\x00") {
		l.refuse("a word that is neither an option nor an address; quote values that have spaces")
	}
	if host != "" && strings.Contains(name, "\x00") {
		if scheme == "" && !strings.HasPrefix(tail, "/") {
			l.refuse("an address that is a variable")
		}
		if user {
			l.refuse("a user before a variable host; write -u")
		}
		l.changes = append(l.changes, "the host is a variable: the path is one of the service's")
		scheme, host = "", ""
	} else if scheme == "" {
		scheme = cmp.Or(l.scheme, "http") + "://" // as curl does
	}
	tail, _, _ = strings.Cut(tail, "#")
	path, present, requested := strings.Cut(tail, "?")
	if !l.pathAsIs && strings.Contains(path, "/.") {
		path = dotless(path)
	}
	if requested || query != "" {
		path += "?" + present
	}
	if query != "" && present != "" && !strings.HasSuffix(present, "&") {
		path += "&"
	}
	return scheme + host + path + query
}

// dotless is a path without the segments . and .. (RFC 3986, section 5.2.4).
func dotless(path string) string {
	var out []string
	parts := strings.Split(path, "/")
	for i, p := range parts {
		switch {
		case p != "." && p != "..":
			out = append(out, p)
			continue
		case p == ".." && len(out) > 1:
			out = out[:len(out)-1]
		}
		if i == len(parts)-1 {
			out = append(out, "")
		}
	}
	return strings.Join(out, "/")
}
