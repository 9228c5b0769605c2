package http1

import (
	"strings"
	"testing"
)

const (
	dated  = ok + "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 5\r\n\r\n"
	later  = ok + "Date: Mon, 07 Nov 1994 18:59:00 GMT\r\nContent-Length: 5\r\n\r\n"
	longer = ok + "Date: Mon, 07 Nov 1994 18:59:00 GMT\r\nContent-Length: 6\r\n\r\n"
)

// After first, second is parsed as without a cache, and comes from the cache (hit) or not.
func TestCache(t *testing.T) {
	check := func(name, first, second string, hit bool) {
		t.Helper()
		var plain, r Response
		var c Cache
		want := read(t, &plain, second)
		r.Use(&c)
		read(t, &r, first)
		if got := c.matches([]byte(second)); got != hit {
			t.Errorf("%s: remembered: %v, want %v", name, got, hit)
		}
		r.Reset()
		if got := read(t, &r, second); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("the same", dated+"hello", dated+"world", true)
	check("another date", dated+"hello", later+"world", true)
	check("another length", dated+"hello", longer+"world!", false)
	check("another status", dated+"hello", strings.Replace(dated, "200", "201", 1)+"hello", false)
	check("no date", ok+"Content-Length: 2\r\n\r\nok", ok+"Content-Length: 2\r\n\r\nko", true)
	check("no body", ok+"Content-Length: 0\r\n\r\n", ok+"Content-Length: 0\r\n\r\n", true)
	check("close", ok+"Connection: close\r\nContent-Length: 0\r\n\r\n",
		ok+"Connection: close\r\nContent-Length: 0\r\n\r\n", true)
	check("in pieces", dated+"hello", dated[:30], false)
	check("chunked is not remembered", ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false)
	// A date that would end the head early is not a date.
	check("a line in the date", dated+"hello",
		strings.Replace(dated, " 08:", "\r\n\r\n", 1)+"hello", false)
	check("a date of another form is part of the head",
		ok+"Date: today\r\nContent-Length: 0\r\n\r\n",
		ok+"Date: todax\r\nContent-Length: 0\r\n\r\n", false)
}

// Heads that are never the same twice are not copied forever.
func TestCacheGivesUp(t *testing.T) {
	var r Response
	var c Cache
	r.Use(&c)
	for i := range 100 {
		r.Reset()
		read(t, &r, ok+"X-Request: "+strings.Repeat("x", i)+"\r\nContent-Length: 0\r\n\r\n")
	}
	if c.learnt != learnMax {
		t.Errorf("learnt %d heads, want %d", c.learnt, learnMax)
	}
}
