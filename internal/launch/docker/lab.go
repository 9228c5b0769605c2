package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/guard"
)

// Labels of all objects that a lab makes. They identify the lab, so that no other lab removes them.
const (
	labelLab       = "prony.lab"   // PID-BIRTH-COUNT
	labelBoot      = "prony.boot"  // boot id of the kernel; numbers start again at each boot
	labelNamespace = "prony.pidns" // PID namespace of the number
	labelGroup     = "prony.group" // name of the control group of a system
)

// lab identifies one launcher of one process of this program.
type lab struct {
	ID        string `json:"id"` // PID-BIRTH-COUNT
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
}

func thisLab() (lab, error) {
	ownWhose, err := cgroup.Own()
	return lab{ID: fmt.Sprintf("%s-%d", ownWhose.Process, count.Add(1)), Boot: ownWhose.Boot,
		Namespace: ownWhose.Namespace}, err
}

func (l lab) labels() map[string]string {
	return map[string]string{labelLab: l.ID, labelBoot: l.Boot, labelNamespace: l.Namespace}
}

// owns reports whether this launcher made the object with these labels.
func (l lab) owns(labels map[string]string) bool {
	return labels[labelLab] == l.ID && labels[labelBoot] == l.Boot &&
		labels[labelNamespace] == l.Namespace
}

// outlived reports whether the lab that made the object with these labels has ended. It returns
// false for labs in other PID namespaces, such as containers, because their processes are not
// visible.
func (l lab) outlived(labels map[string]string) bool {
	if labels[labelBoot] != l.Boot {
		return true
	}
	if labels[labelNamespace] != l.Namespace {
		return false
	}
	process := processOf(labels[labelLab])
	return process != "" && cgroup.Gone(process)
}

// processOf returns the process of a lab's id: what is before the count.
func processOf(id string) string { return id[:max(strings.LastIndexByte(id, '-'), 0)] }

// named is a network or a volume in a list of the engine.
type named struct {
	Name   string
	Labels map[string]string
}

// sweep removes the containers, networks, volumes and control groups whose labels value accepts,
// and describes what it removed.
func sweep(ctx context.Context, engine *api, value func(labels map[string]string) bool) (
	removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	var (
		ours       = labelled(labelLab)
		containers []container.Summary
		networks   []named
		volumes    struct{ Volumes []named }
	)
	if err := engine.get(ctx, "/containers/json", ours, &containers); err != nil {
		return nil, fmt.Errorf("list containers: %w", explained(err))
	}
	var errs []error
	containers = slices.DeleteFunc(containers, func(c container.Summary) bool {
		return !value(c.Labels)
	})
	groups := map[string]bool{}
	for _, c := range containers {
		if g := c.Labels[labelGroup]; g != "" {
			groups[g] = true
		}
	}
	for name := range groups {
		errs = append(errs, inTrees(name, cgroup.Thaw)) // frozen processes cannot be killed
	}
	for _, c := range containers {
		errs = append(errs, removeContainer(ctx, engine, c.ID))
		removed = append(removed, said("container", strings.Join(c.Names, " "), c.Labels))
	}
	for name := range groups {
		errs = append(errs, inTrees(name, cgroup.Remove))
	}
	for _, kind := range []struct {
		name   string
		answer any
		match  *[]named
	}{{"network", &networks, &networks}, {"volume", &volumes, &volumes.Volumes}} {
		if err := engine.get(ctx, "/"+kind.name+"s", ours, kind.answer); err != nil {
			errs = append(errs, fmt.Errorf("list %ss: %w", kind.name, explained(err)))
		}
		for _, x := range *kind.match {
			if value(x.Labels) {
				errs = append(errs, remove(ctx, engine, kind.name, x.Name))
				removed = append(removed, said(kind.name, x.Name, x.Labels))
			}
		}
	}
	return removed, errors.Join(errs...)
}

func said(subject, name string, labels map[string]string) string {
	return fmt.Sprintf("%s %s of lab %s", subject, filepath.Base(name), labels[labelLab])
}

// watch holds the orders of a guard.
type watch struct {
	Socket string `json:"socket"`
	Lab    lab    `json:"lab"`
	Dir    string `json:"dir"`
}

var post = guard.Post{Env: "PRONY_DOCKER_GUARD", Clear: clearUp}

// Guard runs the guard that removes a killed lab's containers and networks, in a process that was
// started as one (see guard.Post.Stand). Call it first in main of every program that uses this
// package, and in TestMain.
func Guard() { post.Stand() }

// clearUp removes what the lab has left, and notes what it could not remove.
func clearUp(orders []byte) error {
	var w watch
	if err := json.Unmarshal(orders, &w); err != nil {
		return fmt.Errorf("read watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	engine, err := connect(ctx, w.Socket)
	var removed []string
	if err == nil {
		removed, err = sweep(ctx, engine, w.Lab.owns)
		engine.Close()
	}
	return guard.Note(w.Dir, "docker-guard.log", w.Lab.ID, removed, err)
}
