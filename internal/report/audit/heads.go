package audit

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/internal/base/lazyregexp"
)

// head is the quantity and unit of a column.
type head struct {
	quantity Quantity
	unit     string
}

// synonyms lists the known heads, in lower case, without units and marks. latencyHead parses
// statistics of latency. docs/formats/audit-json.md prints this list.
var synonyms = map[Quantity]string{
	Rate: "rps|req/s|reqs/s|request/s|requests/s|req/sec|reqs/sec|request/sec|requests/sec|" +
		"requests per second|req per sec|qps|tps|queries/s|ops/s|throughput|rate|achieved rate|" +
		"max throughput|avg throughput|avg rps|mean rps|average rps|max rps|peak rps|rps avg|" +
		"requests/second|http_reqs/s",
	Requests: "requests|total requests|# requests|number of requests|reqs|samples|count|" +
		"# samples|http_reqs|n requests|requests total|request count",
	Duration: "duration|total time|time taken|test duration|elapsed|elapsed time|run time|" +
		"runtime s",
	Errors: "errors|failures|failed|failed requests|errors total|total errors|fail|# failures|" +
		"non-2xx|timeouts|failure count",
	ErrorRate:  "errors/s|errors/sec|failures/s|failures/sec|failed/s",
	ErrorShare: "error %|error rate|errors %|failure rate|failed %|% errors|err %|fail %",
	Good:       "successes|successful requests|ok|successful|2xx|good",
	Connections: "connections|concurrency|conns|concurrent connections|connection count|clients|" +
		"concurrent clients|c",
	Users:         "vus|users|virtual users|concurrent users|vus max|max vus",
	Threads:       "threads|wrk threads",
	Streams:       "streams|streams/connection|max concurrent streams",
	Offered:       "offered|offered rate|target rate|target rps|requested rate|scheduled rate",
	Think:         "think time|think|pause|sleep",
	Iterations:    "iterations",
	IterationRate: "iterations/s|iterations/sec",
	IterationMean: "iteration duration|iteration time|avg iteration duration|iteration_duration",
	Bytes: "bytes|data received|total data|bytes read|transferred|data_received|total " +
		"transferred",
	ByteRate: "bytes/s|transfer/s|transfer/sec|transfer rate|bandwidth|received kb/sec",
	Size:     "response size|body size|size/request|avg. bytes|bytes/request|payload",
	CPU:      "cpu|cpu usage|cpu %|cpu load|cpu utilization|cpu avg|avg cpu|cpu cores used",
	Cores:    "cores|cpus|vcpus|cpu limit|cpu cores",
	Memory: "memory|memory usage|mem|rss|peak mem|peak memory|memory peak|max memory|ram|peak " +
		"rss|" +
		"mem usage|max rss",
	Relative: "relative|ratio|% of baseline|vs baseline|normalized|normalised|relative rps|" +
		"vs self|normalized performance|relative performance|vs first|% of best",
	Rank:           "rank|#|place|position",
	Runs:           "runs|n|repetitions|iterations n|trials|blocks",
	rateWithSpread: "rps stdev|stdev rps|rps sd|ci|95% ci|interval|± ci|cv|spread",
	AskedDuration:  "configured duration",
}

var byHead = func() map[string]Quantity {
	out := map[string]Quantity{}
	for q, names := range synonyms {
		for name := range strings.SplitSeq(names, "|") {
			out[name] = q
		}
	}
	return out
}()

var (
	unitAtEnd = lazyregexp.New(`^(.*?)\s*[\[(,]\s*([^\[\](),]*)[\])]?\s*$`)
	unitTail  = lazyregexp.New(`^(.+)[_ ](ns|us|µs|ms|sec|secs|s|mb|kb|mib|kib|bytes)$`)
	quantiles = map[string]Quantity{"50": P50, "75": P75, "90": P90, "95": P95, "99": P99,
		"99.9": P999, "999": P999, "99.99": P9999, "9999": P9999}
	quantileWord = lazyregexp.New(`^p?\(?(\d{2}(?:\.\d+)?|999|9999)\)?(?:th|%|pct|%ile)?$`)
)

// latencyWords may accompany a statistic of latency and change nothing.
var latencyWords = strings.Fields("latency latencies response time times resp rt request req " +
	"http percentile pct http_req_duration (all) duration line")

// milliseconds lists heads of tables whose times are in ms without saying so: the statistics of
// Locust, and the summaries of JMeter.
var milliseconds = [][]string{
	{"Request Count", "Failure Count", "Median Response Time"}, {"Label", "# Samples", "Average"},
}

var statistics = map[string]Quantity{"avg": Mean, "mean": Mean, "average": Mean, "median": P50,
	"med": P50, "min": Min, "minimum": Min, "fastest": Min, "max": Max, "maximum": Max,
	"slowest": Max, "stdev": Deviation, "stddev": Deviation, "sd": Deviation, "worst": Max}

// headOf returns the meaning of a column's head, or of a row's name in a transposed table.
func headOf(text string) (head, bool) {
	low := strings.ToLower(plain(text))
	low = strings.NewReplacer("µ", "u", "μ", "u", "‑", "-").Replace(low)
	low = strings.Join(strings.Fields(low), " ")
	if q, ok := byHead[low]; ok {
		return head{q, unitIn(low, q)}, true
	}
	if h, ok := latencyHead(low, ""); ok {
		return h, ok
	}
	for _, form := range []*lazyregexp.Pattern{unitAtEnd, unitTail} {
		m := form.FindStringSubmatch(low)
		if m == nil {
			continue
		}
		name, unit := strings.Trim(strings.ReplaceAll(m[1], "_", " "), " :"), m[2]
		if q, ok := byHead[name]; ok {
			if q, unit = inTime(q, unit); q != "" && known(unit, q) {
				return head{q, unit}, true
			}
			continue
		}
		if h, ok := latencyHead(name, unit); ok && known(unit, h.quantity) {
			return h, true
		}
		if h, ok := latencyHead(name+" "+unit, ""); ok { // Latency (p50)
			return h, true
		}
	}
	return head{}, false
}

// inTime returns the rate or the share that a count with such a unit is: "Requests (per second)".
func inTime(q Quantity, unit string) (Quantity, string) {
	rates := map[Quantity]Quantity{Requests: Rate, Errors: ErrorRate, Iterations: IterationRate}
	m := perTime.FindStringSubmatch(unit)
	switch {
	case kinds[q] != aCount:
		return q, unit
	case m != nil:
		return rates[q], "/" + m[1]
	case unit == "%" && q == Errors:
		return ErrorShare, unit
	}
	return q, unit
}

var perTime = lazyregexp.New(`^(?:1|req(?:uest)?s?\s*)?(?:/\s*|per )(sec|s|min)(?:ond|ute)?s?\.?$`)

// known reports whether a unit can be that of a quantity; a text in brackets may be anything.
func known(unit string, q Quantity) bool {
	_, ok := scaleOf(kinds[q], unit, "")
	return ok
}

// unsaid is the unit of a share whose head and cells do not say whether it is one of 1 or of 100.
const unsaid = "?"

func unitIn(low string, q Quantity) string {
	if strings.Contains(low, "%") {
		return "%"
	}
	if q == ErrorShare {
		return unsaid
	}
	if q == ByteRate && strings.Contains(low, "kb/sec") {
		return "kb"
	}
	return ""
}

// latencyHead parses "p99", "latency avg", "99th percentile", "max response time". A mean, minimum
// or maximum needs a word of latency or a unit of time, because it may be of another quantity.
func latencyHead(low, unit string) (head, bool) {
	q, ofLatency := Quantity(""), unitFactors[aTime][unit] > 0
	for w := range strings.FieldsSeq(strings.NewReplacer("_", " ", ":", " ").Replace(low)) {
		m := quantileWord.FindStringSubmatch(w)
		switch {
		case m != nil && quantiles[m[1]] != "" && q == "" && w != m[1]:
			q, ofLatency = quantiles[m[1]], true
		case statistics[w] != "" && q == "":
			q = statistics[w]
		case slices.Contains(latencyWords, w):
			ofLatency = ofLatency || w != "time" && w != "request" && w != "req" && w != "duration"
		default:
			return head{}, false
		}
	}
	return head{q, unit}, q != "" && ofLatency
}

// Columns has a caller's meanings for unknown heads. It records all heads, so that Unknown can
// report a name without a head. A nil Columns has no meanings.
type Columns struct {
	names  []string        // as given
	byName map[string]head // by the name in small letters
	met    map[string]bool // by the name in lower case
	heads  []string        // of everything that was read, each once
}

// ParseColumns parses NAME=MEANING, where a meaning may have a unit: "Lat=p99:ms".
func ParseColumns(args []string) (*Columns, error) {
	out := &Columns{byName: map[string]head{}, met: map[string]bool{}}
	for _, a := range args {
		name, meaning, ok := strings.Cut(a, "=")
		q, unit, _ := strings.Cut(strings.TrimSpace(meaning), ":")
		_, known := kinds[Quantity(q)]
		if !ok || !known && q != "name" {
			return nil, fmt.Errorf("read --column %q: write NAME=MEANING or NAME=MEANING:UNIT; "+
				"meanings are %s", a, strings.Join(Meanings(), ", "))
		}
		name = strings.TrimSpace(name)
		out.names = append(out.names, name)
		out.byName[strings.ToLower(name)] = head{Quantity(q), unit}
	}
	return out, nil
}

// Meanings returns the names of the quantities that a column may have.
func Meanings() (out []string) {
	for q := range kinds {
		if q != rateWithSpread && q != InFlight {
			out = append(out, string(q))
		}
	}
	slices.Sort(out)
	return append(out, "name")
}

// headsMost bounds the list of heads, for readability.
const headsMost = 50

// meet records the heads of a table.
func (c *Columns) meet(heads ...string) {
	if c == nil {
		return
	}
	for _, h := range heads {
		if h = plain(h); h != "" && len(c.heads) <= headsMost && !slices.Contains(c.heads, h) {
			c.heads = append(c.heads, h)
		}
	}
}

// Unknown returns an error for names that no column has, in all files that have been read with
// these Columns, because a misspelled name would have no effect.
func (c *Columns) Unknown() error {
	var gone []string
	for _, name := range c.names {
		if !c.met[strings.ToLower(name)] {
			gone = append(gone, fmt.Sprintf("%q", name))
		}
	}
	if gone == nil {
		return nil
	}
	location := "the files have no columns"
	if len(c.heads) > 0 {
		location = "known columns are " + strings.Join(c.heads[:min(headsMost, len(c.heads))], ", ")
	}
	if len(c.heads) > headsMost {
		location += " and more"
	}
	return fmt.Errorf("--column: no file has a column %s; %s", strings.Join(gone, " or "), location)
}

func (c *Columns) given(text string) (head, bool) {
	if c == nil {
		return head{}, false
	}
	low := strings.ToLower(plain(text))
	h, ok := c.byName[low]
	if ok {
		c.met[low] = true
	}
	return h, ok
}

var percentCell = lazyregexp.New(`^[\d.,]+\s*%$`)

// longestHead is in bytes; a longer text is not a head, and takes seconds to match.
const longestHead = 4 << 10

func (c *Columns) headOf(text, sample string) (head, bool) {
	if len(text) > longestHead || len(sample) > longestHead {
		return head{}, false
	}
	if h, ok := c.given(text); ok {
		return h, true
	}
	if h, ok := headOf(text); ok {
		if h.quantity == Errors && percentCell.MatchString(plain(sample)) {
			h = head{ErrorShare, "%"}
		}
		return h, true
	}
	if against.MatchString(plain(text)) && ratioCell.MatchString(plain(sample)) {
		return head{Relative, ""}, true
	}
	m := numberHead.FindStringSubmatch(plain(sample))
	if m == nil || m[4] == "" {
		return head{}, false
	}
	// "Avg" alone is ambiguous; with "2.6ms" it is not.
	h, ok := headOf(text + " (" + m[4] + ")")
	return head{h.quantity, ""}, ok
}
