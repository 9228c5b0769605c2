package suite

import (
	"fmt"
	"reflect"
)

// New makes a suite without a file. set receives it with the defaults of all keys and sets the
// others; its loads and requests begin as NewLoad and NewRequest. New checks it as Read does. Hash
// is the hash of the suite's values.
func New(set func(*Suite)) (*Suite, error) {
	s := &Suite{}
	preset(reflect.ValueOf(s).Elem(), "")
	set(s)
	s.fill()
	if err := s.check(&checker{}); err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	s.settle()
	s.Hash = hashAsJSON(s)
	return s, nil
}

// NewLoad returns a load with the defaults of all other keys.
func NewLoad(name, model string) Load {
	var l Load
	preset(reflect.ValueOf(&l).Elem(), "loads[].")
	l.Name, l.Model = name, model
	return l
}

// NewRequest returns a request with the defaults of all other keys.
func NewRequest(request string) Request {
	var r Request
	preset(reflect.ValueOf(&r).Elem(), "scenarios[].requests[].")
	r.Request = request
	return r
}
