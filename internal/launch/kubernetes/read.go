package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"prony.example/internal/base/lazyregexp"
)

// Bounds on what the cluster says.
const (
	maxSaid  = 64 << 20 // bytes of one answer, or of one watch
	maxWords = 600      // bytes of a message that is passed on
)

// condition is one of a pod or a node.
type condition struct{ Type, Status, Reason, Message string }

// state is what a container is doing; one of the three.
type state struct {
	Waiting    *struct{ Reason, Message string }
	Running    *struct{}
	Terminated *struct {
		ExitCode        int64
		Reason, Message string
	}
}

// pod is what the lab reads of one.
type pod struct {
	Metadata struct {
		Name, UID       string
		OwnerReferences []struct{ UID string }
	}
	Spec   struct{ NodeName string }
	Status struct {
		Phase, Reason, Message, QOSClass, PodIP string
		Conditions                              []condition
		ContainerStatuses                       []containerStatus
	}
}

// containerStatus is what a node says of a container.
type containerStatus struct {
	Name, ContainerID, ImageID string
	State                      state
}

// change is one step of a watch.
type change struct {
	Type   string // ADDED, MODIFIED, DELETED, ERROR
	Object pod
}

// event is something that happened to an object, in its own words.
type event struct{ Type, Reason, Message string }

// node is what the lab reads of one.
type node struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Status struct {
		NodeInfo struct {
			BootID, KubeletVersion, ContainerRuntimeVersion, KernelVersion string
		}
		Conditions []condition
	}
}

// job is what the lab reads of one.
type job struct {
	Metadata struct {
		Name, UID           string
		Labels, Annotations map[string]string
	}
}

// list is what a get of several gives.
type list[T any] struct{ Items []T }

// readChange reads the next step of a watch; io.EOF ends it.
func readChange(from *json.Decoder) (c change, err error) {
	if err := from.Decode(&c); err != nil {
		if errors.Is(err, io.EOF) {
			return c, io.EOF
		}
		return c, fmt.Errorf("read a pod's change from kubectl's output: %w", err)
	}
	return c, nil
}

// readAs reads one object of an answer.
func readAs[T any](answer []byte) (v T, err error) {
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read kubectl's output: %w", err)
	}
	return v, nil
}

// readEach reads objects that an answer has one behind the other.
func readEach[T any](answer []byte) (all []T, err error) {
	for from := json.NewDecoder(bytes.NewReader(answer)); from.More(); {
		var v T
		if err := from.Decode(&v); err != nil {
			return nil, fmt.Errorf("read kubectl's output: %w", err)
		}
		all = append(all, v)
	}
	return all, nil
}

// said is a text of the cluster, fit to be passed on: one line, without what moves a cursor, and
// not longer than anybody reads.
func said(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}

// hexID is what a runtime calls a container, behind the name of the runtime. It becomes part of a
// path, and so must be nothing else.
var hexID = lazyregexp.New(`^[a-z0-9.-]+://([0-9a-f]{12,64})$`)

// status is that of the pod's one container; the zero one: its node has not said any.
func (p *pod) status() (s containerStatus) {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == container {
			return c
		}
	}
	return s
}

// state is what the container does.
func (p *pod) state() state { return p.status().State }

// containerID is the runtime's own number of the container; empty: it has none, or not yet.
func (p *pod) containerID() string {
	if m := hexID.FindStringSubmatch(p.status().ContainerID); m != nil {
		return m[1]
	}
	return ""
}

// image is what the node has started, by its digest.
func (p *pod) image() string { return said(p.status().ImageID) }

// uidForm is that of an object's UID (RFC 4122), which becomes part of a path as well.
var uidForm = lazyregexp.New(`^[0-9a-f-]{8,64}$`)

// nameForm is that of an object's name (RFC 1123), which becomes a word of kubectl's line and must
// not be one of its flags.
var nameForm = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// isOf says whether a pod is that of a job: anybody in the namespace can give another its labels.
func (p *pod) isOf(job string) bool {
	return nameForm.MatchString(p.Metadata.Name) && uidForm.MatchString(p.Metadata.UID) &&
		slices.ContainsFunc(p.Metadata.OwnerReferences, func(o struct{ UID string }) bool {
			return o.UID == job && job != ""
		})
}

// condition is one by its type; nil: there is none.
func (p *pod) condition(kind string) *condition {
	for i, c := range p.Status.Conditions {
		if c.Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
