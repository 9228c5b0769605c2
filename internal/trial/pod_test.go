package trial_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/service"
	"prony.example/record"
)

// cluster is a launcher whose processes are pods.
type cluster struct{ *fake.Launcher }

func (c cluster) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p, err := c.Launcher.Launch(ctx, s)
	return &podded{Process: p}, err
}

// podded shares its core only while it is new, and at the end with another pod; meanwhile its
// cluster's API was unavailable.
type podded struct {
	launch.Process
	asked int
}

func (p *podded) Pod(context.Context) record.Pod {
	p.asked++
	if p.asked == 1 {
		return record.Pod{Name: "p", Cores: []int{5}, CoresSharedWith: []string{"x"}}
	}
	return record.Pod{Cores: []int{5}, CoresSharedWith: []string{"x", "y"},
		APIOutages: []record.APIOutage{{DurationNs: 7}}}
}

// The record of a pod has its cores, the pods that shared them by the end, and the outages of the
// cluster's API.
func TestLifeOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Containers = map[string]launch.Launcher{"kubernetes": cluster{w.launcher}}
		start := w.launcher.Start
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			for _, m := range s.Mounts { // a namespace may forbid folders of the node
				if m.Destination != "" {
					t.Errorf("the pod has a folder for dumps: %+v", m)
				}
			}
			return start(s)
		}
		e := w.experiment("a")
		e.Plan.Trials[0].Launcher = "kubernetes"
		subject := e.Subjects["a"]
		subject.Target.Runtime = "jvm"
		e.Subjects["a"] = subject
		*e.Subjects["a"].Built = service.Built{Images: map[string]string{"": "prony/a:h"},
			Front: "prony/a:h"}
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 || records[0].Pod == nil {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		r := records[0]
		if !slices.Equal(r.Limits.ServiceCores, []int{5}) || r.Pod.Name != "p" ||
			!slices.Equal(r.Pod.CoresSharedWith, []string{"x", "y"}) || len(r.Pod.APIOutages) != 1 {
			t.Errorf("cores %v, pod %+v", r.Limits.ServiceCores, r.Pod)
		}
		if !slices.ContainsFunc(r.Verdict.Findings, func(f record.Finding) bool {
			return f.Rule == "pod" && f.Grade == record.Suspect
		}) {
			t.Errorf("findings are %+v, want that it shares cores", r.Verdict.Findings)
		}
	})
}
