package formattest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Names checks that each key of the type that v points to, at each place, is refused in another
// case, with the key as it is written and as it must be: alone, and beside the right one in JSON,
// where decoders would take one of both. tag is that of the keys' names, yaml or json.
func Names(t *testing.T, v any, tag string, decode func(data []byte, v any) error) {
	t.Helper()
	f := finder{tag: tag, visited: map[reflect.Type]bool{}}
	places := f.find(reflect.TypeOf(v), nil)
	if len(places) == 0 {
		t.Fatalf("%T has no key", v)
	}
	for _, spot := range places {
		right := spot[len(spot)-1]
		first := strings.ToUpper(right[:1]) + right[1:]
		for _, wrong := range []string{first, strings.ToUpper(right), strings.ToLower(right)} {
			if wrong == right {
				continue
			}
			objects := []string{fmt.Sprintf("{%q: null}", wrong)}
			if tag == "json" {
				objects = append(objects, fmt.Sprintf("{%q: null, %q: null}", right, wrong),
					fmt.Sprintf("{%q: null, %q: null}", wrong, right))
			}
			for _, object := range objects {
				document := spot[:len(spot)-1].document(object)
				err := decode([]byte(document), reflect.New(reflect.TypeOf(v).Elem()).Interface())
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", wrong)) ||
					!strings.Contains(err.Error(), fmt.Sprintf("%q", right)) {
					t.Errorf("%s of %T: error %v, want one with %q and %q", document, v, err, wrong,
						right)
				}
			}
		}
	}
}
