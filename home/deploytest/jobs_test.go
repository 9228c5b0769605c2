package deploytest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// job returns the specification of the rendered job of a part, also of a CronJob.
func job(t *testing.T, part string, args ...string) object {
	t.Helper()
	_, all := rendered(t, args...)
	for _, o := range all {
		if kind := o["kind"]; kind != "Job" && kind != "CronJob" ||
			o.at("metadata", "labels", "app.kubernetes.io/component") != part {
			continue
		}
		for _, path := range [][]string{{"spec", "jobTemplate", "spec"}, {"spec"}} {
			if spec, _ := o.at(path...).(map[string]any); spec["template"] != nil {
				return spec
			}
		}
	}
	t.Fatalf("%q has no job of part %s", args, part)
	return nil
}

// A limit of failures of the whole job would end the other generators with a lost one. The lab is
// begun once.
func TestChartRetries(t *testing.T) {
	for _, values := range []string{"generators", "nightly-generators"} {
		file := filepath.Join(chart, "ci", values+".yaml")
		spec := job(t, "generator", "--values", file)
		if spec["backoffLimit"] != nil || fmt.Sprint(spec["backoffLimitPerIndex"]) != "0" ||
			spec["completionMode"] != "Indexed" || spec["maxFailedIndexes"] != nil {
			t.Errorf("%s: the generators' job is %v", values, spec)
		}
		if spec = job(t, "lab", "--values", file); fmt.Sprint(spec["backoffLimit"]) != "0" {
			t.Errorf("%s: the lab's job is %v", values, spec)
		}
	}
}

// kubectl logs job/NAME shows only one container, so a pod has no other: one command measures and
// judges, with one exit code.
func TestChartLabIsOneContainer(t *testing.T) {
	for _, file := range values(t) {
		spec := job(t, "lab", "--values", file)
		pod, _ := spec.at("template", "spec").(map[string]any)
		all := object(pod).list("containers")
		if len(all) != 1 || pod["initContainers"] != nil {
			t.Fatalf("%s: the lab has %d containers, and before them %v", file, len(all),
				pod["initContainers"])
		}
		var args []string
		list, _ := all[0]["args"].([]any)
		for _, arg := range list {
			args = append(args, fmt.Sprint(arg))
		}
		line := strings.Join(args, " ")
		gate := strings.Contains(line, "gate /results/$(POD_NAME) --last-good=/results/good "+
			"--max-regression=10% --inconclusive=fail -- run --out=/results/$(POD_NAME) --remote=")
		if slices.Contains(args, "run") != gate {
			t.Errorf("%s: the lab runs %s", file, line)
		}
	}
}

// The deadline ends a pod that cannot start, and the pod stays with its log. The job's own
// deadline, which removes the pod, comes later.
func TestChartDeadline(t *testing.T) {
	testsets.Reads(t, chart)
	for _, row := range []struct {
		set  string
		want int // seconds
	}{
		{"url=http://x", 30 + 600},
		{"url=http://x,load.duration=1h2m3.5s", 3724 + 600},
		{"url=http://x,load.duration=500ms", 601},
		{"url=http://x,load.duration=2h,deadlineSeconds=90", 90},
		{"run=suite,suite.project=x", 3600},
		{"run=suite,suite.project=x,deadlineSeconds=60", 60},
	} {
		spec := job(t, "lab", "--set", row.set)
		pod := fmt.Sprint(spec.at("template", "spec", "activeDeadlineSeconds"))
		if whole := fmt.Sprint(spec["activeDeadlineSeconds"]); pod != fmt.Sprint(row.want) ||
			whole != fmt.Sprint(row.want+120) {
			t.Errorf("%s: the pod ends after %s s, its job after %s s; want %d and %d", row.set,
				pod, whole, row.want, row.want+120)
		}
	}
}
