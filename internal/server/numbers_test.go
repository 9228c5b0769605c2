package server

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml/formattest"
)

// A number of a form is exact or refused with its key and text.
func TestFormNumbersAreExact(t *testing.T) {
	check := func(body, want string) {
		t.Helper()
		err := readForm(httptest.NewRequest("POST", "/", strings.NewReader(body)), &Form{})
		if got := fmt.Sprint(err); !strings.Contains(got, want) ||
			(err == nil) != (want == "<nil>") {
			t.Errorf("%s is read with %v, want %s", body, err, want)
		}
	}
	for _, form := range []string{`{"blocks": %s}`, `{"seed": %s}`} {
		check(fmt.Sprintf(form, "3"), "<nil>")
		for _, text := range []string{"2.5", "1e3", "3.0", `"3"`, "99999999999999999999"} {
			check(fmt.Sprintf(form, text), text)
		}
		check(fmt.Sprintf(form, "null"), "has no value")
		check(fmt.Sprintf(form, "0x10"), "invalid character 'x'")
	}
	check(`{"limits": {"cpus": 0.5}}`, "<nil>")
	check(`{"limits": {"cpus": "0.5"}}`, `cpus must be a decimal number, not "0.5"`)
	check(`{"limits": {"cpus": 1e999}}`, "cpus is too large: 1e999")
	check(`{"limits": {"cpus": null}}`, "cpus has no value")
}

// Every key of a request's body has one name.
func TestRequestKeysHaveOneName(t *testing.T) {
	decode := func(data []byte, v any) error {
		return read(httptest.NewRequest("POST", "/", bytes.NewReader(data)), v)
	}
	formattest.Names(t, &Form{}, "json", decode)
	formattest.Names(t, &Edited{}, "json", decode)
	labels := map[string]string{} // whose keys are the user's
	if err := decode([]byte(`{"team": "a", "Team": "b"}`), &labels); err != nil {
		t.Error(err)
	}
}
