package result

import "cmp"

// Errors counts requests that did not end as the scenario expects, by class.
type Errors struct {
	Connect int64 `json:"connect"`
	Write   int64 `json:"write"`
	Read    int64 `json:"read"`    // reset, or closed before the answer was whole
	Timeout int64 `json:"timeout"` // no whole answer within the scenario's timeout
	Parse   int64 `json:"parse"`   // not HTTP
	Status  int64 `json:"status"`
	Body    int64 `json:"body"`              // wrong length or wrong bytes
	Unasked int64 `json:"unasked,omitempty"` // answers without a request

	Example string `json:"example,omitempty"` // the first one, in words
}

// Total is the number of all that went wrong.
func (e Errors) Total() int64 { return e.Connect + e.Unasked + e.Requests() }

// Requests is the number of failed requests.
func (e Errors) Requests() int64 {
	return e.Write + e.Read + e.Timeout + e.Parse + e.Status + e.Body
}

// Why says in words why there is no good answer: the first error, or that there was none either.
func (e Errors) Why() string { return cmp.Or(e.Example, "every request is still waiting") }
