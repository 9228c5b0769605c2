package config_test

import (
	"strings"
	"testing"

	"prony/internal/config"
)

type file struct {
	Name  string `yaml:"name"`
	Count int    `yaml:"count"`
	Inner []struct {
		Connections int `yaml:"connections"`
	} `yaml:"inner"`
}

func TestErrorsNameThePlaceAndTheRemedy(t *testing.T) {
	check := func(name, yaml, want string) {
		t.Run(name, func(t *testing.T) {
			err := config.Decode("s.yaml", []byte(yaml), &file{})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	check("unknown key", "name: a\ncuont: 3\n",
		`s.yaml:2: unknown key "cuont" in "cuont: 3"; did you mean "count"?`)
	check("unknown key below", "inner:\n  - conections: 3\n",
		`s.yaml:2: unknown key "conections" in "- conections: 3"; did you mean "connections"?`)
	check("nothing near", "zebra: 3\n", `s.yaml:1: unknown key "zebra" in "zebra: 3"; `+
		`known keys are name, count, inner, connections`)
	check("wrong type", "count: many\n", `s.yaml:1: cannot unmarshal string into `+
		`Go struct field file.Count of type int in "count: many"`)
	check("twice", "name: a\nname: b\n",
		`s.yaml:2: mapping key "name" already defined at [1:1] in "name: b"`)
	check("broken", "name: [a\n", `s.yaml:1: sequence end token ']' not found in "name: [a"`)
}

func TestATagIsNoPanic(t *testing.T) {
	err := config.Decode("s.yaml", []byte("inner: !x\n"), &file{})
	if err == nil || !strings.Contains(err.Error(), "s.yaml") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestAtFindsTheLine(t *testing.T) {
	err := config.At("s.yaml", []byte("a: 1\nrate: 0\n"), "rate: 0", "rate is not positive", "")
	if got, want := err.Error(), `s.yaml:2: rate is not positive in "rate: 0"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
