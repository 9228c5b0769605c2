package lab

import (
	"strings"
	"testing"

	"prony.example/internal/service"
)

// Only accepts the full name of a target, and a service's name if it has one target.
func TestOnlyTarget(t *testing.T) {
	c := Catalog{{Name: "a", Targets: []service.Target{{Name: "x"}}},
		{Name: "b", Targets: []service.Target{{Name: "y"}, {Name: "z"}}},
		{Name: "c", Targets: []service.Target{{Name: "x", ExplicitOnly: "slow"}}}}
	for name, want := range map[string]string{"a": "a", "c": "c", "c/x": "c"} {
		got, err := c.Only(name)
		if err != nil || len(got) != 1 || got[0].Name != want || len(got[0].Targets) != 1 {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
	}
	c = append(c, c[1])
	if got, err := c.Only("d"); err == nil || strings.Count(err.Error(), "b/y") > 1 {
		t.Errorf("an unknown name is %+v, %v", got, err)
	}
	if err := c.unknown("service", "d"); !strings.HasSuffix(err.Error(), "there are a, b, c") {
		t.Errorf("%v, want each service once", err)
	}
	if got, err := c.Only("d"); err == nil || !strings.Contains(err.Error(), `target "d"`) {
		t.Errorf("an unknown name is %+v, %v", got, err)
	}
}

// Contained names the launcher of services that consist only of images.
func TestContained(t *testing.T) {
	images := map[string]string{"": "app:1"}
	for want, made := range map[string]*service.Built{"": {Dir: "/"}, "docker": {Images: images},
		"kubernetes": {Images: images, Launcher: "kubernetes"}} {
		if got := Contained(&service.Service{Made: made}); got != want {
			t.Errorf("%+v: %q, want %q", made, got, want)
		}
	}
	if got := Contained(&service.Service{}); got != "" {
		t.Errorf("a service of the catalog: %q", got)
	}
}
