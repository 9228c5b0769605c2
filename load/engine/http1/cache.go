package http1

import "bytes"

// Cache remembers the last response head for a kind of request. Most servers send the same bytes
// every time, except for the date; such a head is compared instead of parsed. Only one thread may
// use it.
type Cache struct {
	head   []byte // with the empty line; empty: nothing learned
	date   int    // offset of the Date value, 0 for none
	status int
	length int64
	close  bool
	learnt int
}

const (
	dateSize = 29 // "Sun, 06 Nov 1994 08:49:37 GMT", RFC 9110 §5.6.7
	learnMax = 16 // caching heads that differ every time is not worth the copies
)

// matches reports whether b begins with the head, with any date.
func (c *Cache) matches(b []byte) bool {
	n := len(c.head)
	if n == 0 || len(b) < n {
		return false
	}
	if c.date == 0 {
		return bytes.Equal(b[:n], c.head)
	}
	end := c.date + dateSize
	return bytes.Equal(b[:c.date], c.head[:c.date]) && bytes.Equal(b[end:n], c.head[end:]) &&
		isDate(b[c.date:end])
}

// isDate checks only separators, because the digits do not affect framing.
func isDate(b []byte) bool {
	if b[3] != ',' || b[19] != ':' || b[22] != ':' || b[28] != 'T' {
		return false
	}
	for _, x := range b {
		if x < ' ' {
			return false
		}
	}
	return true
}

// learn stores a complete head that was parsed without error, if its response has a length.
func (c *Cache) learn(r *Response, head []byte) {
	if c.learnt == learnMax || r.state != inBody {
		return
	}
	c.learnt++
	c.head = append(c.head[:0], head...)
	c.status, c.length, c.close = r.Status, r.remaining, r.Close
	c.date = 0
	for i := 0; i < len(head); {
		end := i + bytes.IndexByte(head[i:], '\n')
		if _, ok := value(head[i:end-1], "date"); ok && end-1-i == len("Date: ")+dateSize &&
			head[i+len("Date:")] == ' ' && isDate(head[end-1-dateSize:end-1]) {
			c.date = end - 1 - dateSize
			return
		}
		i = end + 1
	}
}

// use applies the cached head to r.
func (r *Response) use(c *Cache) (n int, done bool) {
	r.Status, r.Close, r.remaining, r.state = c.status, c.close, c.length, inBody
	return len(c.head), c.length == 0
}
