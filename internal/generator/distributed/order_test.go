package distributed

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"prony.example/internal/generator"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/extract"
)

// TestOrders checks that an order is unchanged after encoding and decoding.
func TestOrders(t *testing.T) {
	find, err := extract.JSON("a.b")
	if err != nil {
		t.Fatal(err)
	}
	is, err := extract.Is(find, "{name} {token}", []string{"name", "token"})
	if err != nil {
		t.Fatal(err)
	}
	o := scored(123.456)
	o.Spec.Scenario.Columns = []string{"name"}
	o.Spec.Scenario.Rows = [][][]byte{{[]byte("é")}, {[]byte("\xff")}}
	o.Spec.Scenario.Requests = append(o.Spec.Scenario.Requests, load.Request{Method: "POST",
		Path: "/x", Headers: []load.Header{{Name: "A", Value: "b"}}, Body: "\xff\x00", Weight: 2,
		Checks:  []extract.Check{is, extract.Exists(find, false)},
		Extract: []extract.Capture{{Var: "token", From: extract.Body()}}})
	o.By = generator.Prony{
		Stack: &nethttp.Config{Protocol: nethttp.H2C, Network: "tcp", Address: "a:1",
			Host: "a", Path: "/p", Streams: 3, Insecure: true, CA: "x"},
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	part := load.Part{Index: 1, Of: 3}
	b, err := json.Marshal(o.form(part, []int{4}))
	if err != nil {
		t.Fatal(err)
	}
	var f orderForm
	if err := read(b, &f); err != nil {
		t.Fatal(err)
	}
	got, err := f.order()
	if err != nil {
		t.Fatal(err)
	}
	want := o
	if a, b := got.form(part, []int{4}), want.form(part, []int{4}); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\nwant\n%+v", a, b)
	}
	if got.Spec.Part != part || !slices.Equal(got.Spec.Cores, []int{4}) {
		t.Errorf("it is part %v on cores %v", got.Spec.Part, got.Spec.Cores)
	}
}
