package profile

import (
	"bytes"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// FuzzParse wants that nothing which a service sends ends the program, and profiles that are.
func FuzzParse(f *testing.F) {
	fn := &pprof.Function{ID: 1, Name: "f"}
	at := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: fn, Line: 7}}}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*pprof.Sample{{Location: []*pprof.Location{at}, Value: []int64{5}}},
		Location:   []*pprof.Location{at}, Function: []*pprof.Function{fn},
	}
	var packed, plain bytes.Buffer
	if err := p.Write(&packed); err != nil {
		f.Fatal(err)
	}
	if err := p.WriteUncompressed(&plain); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes())
	f.Add(plain.Bytes())
	f.Add(plain.Bytes()[:plain.Len()/2])
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err == nil && p.CheckValid() != nil {
			t.Errorf("%v", p.CheckValid())
		}
	})
}
