package audit

import (
	"cmp"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/record"
)

// command is the command line of a load generator, as far as its flags could be parsed.
type command struct {
	tool   string
	line   int
	values map[Quantity]Value
}

// asks maps the flags of each tool to the quantities that they set.
var asks = map[string]map[string]Quantity{
	"wrk": {"-c": Connections, "--connections": Connections, "-d": AskedDuration,
		"--duration": AskedDuration},
	"wrk2": {"-c": Connections, "--connections": Connections, "-d": AskedDuration,
		"--duration": AskedDuration, "-R": Offered, "--rate": Offered},
	"hey": {"-c": Connections, "-n": AskedRequests, "-z": AskedDuration},
	"oha": {"-c": Connections, "-n": AskedRequests, "-z": AskedDuration, "-q": Offered},
	"ab":  {"-c": Connections, "-n": AskedRequests, "-t": AskedDuration},
	"bombardier": {"-c": Connections, "--connections": Connections, "-n": AskedRequests,
		"--requests": AskedRequests, "-d": AskedDuration, "--duration": AskedDuration,
		"-r": Offered, "--rate": Offered},
	"h2load": {"-c": Connections, "-n": AskedRequests, "-D": AskedDuration, "-m": Streams},
	"k6":     {"--vus": Users, "-u": Users, "--duration": AskedDuration, "-d": AskedDuration},
	"vegeta": {"-rate": Offered, "-duration": AskedDuration},
	"autocannon": {"-c": Connections, "-d": AskedDuration, "-a": AskedRequests, "-p": Streams,
		"-R": Offered},
}

// closed lists tools that send on a connection when they have its last response, unless given a
// rate.
const closed = "wrk hey oha ab bombardier h2load autocannon"

var (
	commandHead = lazyregexp.New(
		"(?:^|[\\s$>`/])(wrk2?|hey|oha|ab|bombardier|h2load|k6 run|vegeta attack|autocannon)" +
			`\s+-?-?\S`)
	goesOn = lazyregexp.New(`\\\s*(#.*)?$`)
)

// commandAt parses a command that begins in a line; more has the lines after it.
func commandAt(line string, number int, more []string) *command {
	m := commandHead.FindStringSubmatchIndex(line)
	if m == nil {
		return nil
	}
	text := line[m[2]:]
	for goesOn.MatchString(text) {
		text = goesOn.ReplaceAllString(text, "")
		if len(more) == 0 {
			break
		}
		text, more = text+" "+strings.TrimSpace(more[0]), more[1:]
	}
	if i := strings.IndexAny(text, "`|>"); i >= 0 {
		text = text[:i]
	}
	words := strings.Fields(text)
	c := &command{tool: words[0], line: number, values: map[Quantity]Value{}}
	if c.tool == "wrk" && strings.Contains(text, " -R") {
		c.tool = "wrk2"
	}
	for i := 1; i < len(words); i++ {
		flag, value, joined := strings.Cut(words[i], "=")
		q := asks[c.tool][flag]
		if q == "" && len(flag) > 2 && flag[0] == '-' && flag[1] != '-' {
			q, value, joined = asks[c.tool][flag[:2]], flag[2:], true // -c100
		}
		if q == "" {
			continue
		}
		if !joined && i+1 < len(words) {
			i++
			value = words[i]
		}
		c.take(q, value)
	}
	if len(c.values) == 0 {
		return nil
	}
	return c
}

func (c *command) take(q Quantity, text string) {
	unit := ""
	if q == AskedDuration {
		unit = "s"
	}
	v, ok := parseValue(strings.TrimSuffix(text, "/s"), unit, q)
	if !ok {
		return
	}
	v.Slack, v.Line = 0, c.line
	c.values[q] = v
}

// model returns the load model of the command, or "" if it is unknown.
func (c *command) model() string {
	_, rated := c.values[Offered]
	switch {
	case c.tool == "wrk2" || c.tool == "vegeta" || rated:
		return record.Open
	case strings.Contains(" "+closed+" ", " "+c.tool+" "):
		return record.Closed
	}
	return ""
}

// give adds the settings of its command to a row that does not state them itself.
func (c *command) give(r *Row) {
	if c == nil {
		return
	}
	for q, v := range c.values {
		if _, ok := r.Values[q]; !ok {
			r.Values[q] = v
		}
	}
	r.Tool, r.Model = cmp.Or(r.Tool, c.tool), cmp.Or(r.Model, c.model())
}
