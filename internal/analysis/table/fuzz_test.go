package table

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// FuzzDecode checks that no histogram of a record crashes the program, or results in a NaN that is
// used as a number.
func FuzzDecode(f *testing.F) {
	h := hdrhistogram.New(1, 1e9, 2)
	if err := h.RecordValue(1234); err != nil {
		f.Fatal(err)
	}
	good, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(string(good[:len(good)/2]))
	f.Add("")
	f.Add("HISTFAAAAAB4nA==")
	f.Fuzz(func(t *testing.T, text string) {
		d := record.Dist{Count: 1, P50Ns: 5, HDR: text}
		q := quantile(d, decode(d), 0.5)
		if math.IsNaN(q) != damaged(d) || math.IsInf(q, 0) { // what is damaged has no number
			t.Errorf("%g of %q", q, text)
		}
	})
}
