package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/formats/metrics.md lists Prony's own metrics, in the same order.
func TestThePageNamesEveryMetric(t *testing.T) {
	data, err := os.ReadFile("../../docs/formats/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| metric | own labels | value per | meaning |\n|---|---|---|---|\n")
	for _, m := range Metrics {
		var own []string
		for _, l := range m.Labels {
			own = append(own, "`"+l+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", m.Name, strings.Join(own, ", "), m.Of,
			m.Help)
	}
	if !strings.Contains(string(data), want.String()) {
		t.Errorf("docs/formats/metrics.md wants this table:\n%s", want.String())
	}
	labels := "`" + strings.Join(CommonLabels, "`, `") + "`"
	if !strings.Contains(strings.ReplaceAll(string(data), "\n", " "), labels) {
		t.Errorf("docs/formats/metrics.md names no labels %s", labels)
	}
}
