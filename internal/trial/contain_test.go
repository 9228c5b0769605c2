package trial_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony/internal/launch"
	"prony/internal/launch/fake"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/trial"
)

// apart is a launcher of containers with a network of their own.
type apart struct{ *fake.Launcher }

func (apart) Listen() string { return "0.0.0.0" }

// A trial of a container starts its image, listens in its own network, and may write only where the
// lab wants to read; the record names launcher and image.
func TestLifeOfAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var got launch.Spec
		start := w.launcher.Start
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			got = s
			return start(s)
		}
		w.lab.Containers = map[string]launch.Launcher{"docker": apart{w.launcher}}
		e := w.experiment("a")
		e.Plan.Trials[0].Launcher = "docker"
		e.Rides = map[string]trial.Ride{e.Plan.Trials[0].Variant: {Path: "/agents/x.jar"}}
		e.Images = map[string]trial.Image{"a": {Built: &service.Built{Hash: "h", SHA256: "5a",
			ImageBytes: 7, Images: map[string]string{"": "prony/a:h"}, Front: "prony/a:h"}}}
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 || records[0].Outcome != result.Measured {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		r := records[0]
		if r.Target.Launcher != "docker" || r.Artifact.Image != "prony/a:h@sha256:5a" ||
			r.Artifact.ImageBytes != 7 {
			t.Errorf("launcher %q, artifact %+v", r.Target.Launcher, r.Artifact)
		}
		if got.Image != "prony/a:h" || !slices.Contains(got.Env, "HOST=0.0.0.0") {
			t.Errorf("image %q, environment %q", got.Image, got.Env)
		}
		logs := filepath.Join(w.lab.Dir, "logs")
		want := fmt.Sprint([]launch.Mount{{Path: "/agents/x.jar"}, {Path: logs, Write: true}})
		if fmt.Sprint(got.Mounts) != want {
			t.Errorf("mounts %v, want %v", got.Mounts, want)
		}
		info, err := os.Stat(logs)
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
			t.Errorf("logs: %v, error %v; others must be able to write there", info.Mode(), err)
		}
	})
}

// A target whose image cannot be built fails its trials in containers, and runs as a process.
func TestLackingImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Containers = map[string]launch.Launcher{"docker": w.launcher}
		e := w.experiment("a")
		contained := e.Plan.Trials[0]
		contained.Launcher, contained.ID = "docker", contained.ID+"-docker"
		e.Plan.Trials = append(e.Plan.Trials[:1], contained)
		e.Images = map[string]trial.Image{"a": {Lacking: fmt.Errorf("no such base")}}
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 2 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		if records[0].Outcome != result.Measured {
			t.Errorf("as a process: %+v", records[0].Failure)
		}
		if f := records[1].Failure; f == nil || f.Step != "build" ||
			!strings.Contains(f.Error, "no such base") {
			t.Errorf("in a container: %+v", f)
		}
	})
}
