package boards

import "testing"

// A dashboard that can be read has queries that can be filled.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"uid":"a","panels":[{"type":"row","panels":[{"targets":[{"expr":"$a"}]}]}]}`))
	f.Add([]byte(`{"templating":{"list":[{"name":"a","query":"b"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text)
		if err != nil {
			return
		}
		for _, q := range b.Queries() {
			if filled, _ := Fill(q.Text, nil); filled != q.Text {
				t.Errorf("%q without values becomes %q", q.Text, filled)
			}
		}
	})
}
