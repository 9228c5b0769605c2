//go:build linux && !portable

package heartbeat

import (
	"reflect"
	"testing"
)

func TestStartIsReadBack(t *testing.T) {
	for _, s := range []Start{{3, 1_000_000, []int{0}}, {99, 250_000, []int{5, 2, 1023}}} {
		for _, first := range []bool{false, true} {
			got, second, err := parse(s.text(first))
			if err != nil || second != first || !reflect.DeepEqual(got, s) {
				t.Errorf("%+v, %v is read as %+v, %v, %v", s, first, got, second, err)
			}
		}
	}
	for _, text := range []string{"", "true 1 2", "true 1 2 x", "true 1 two 3"} {
		if s, _, err := parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

func TestSize(t *testing.T) {
	if got := len(Beats(make([]byte, Size(3)))); got != 3 {
		t.Errorf("the memory of 3 cores has %d beats", got)
	}
}
