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

// Limits on answers of the cluster.
const (
	maxSaid  = 64 << 20 // bytes of one answer, or of one watch
	maxWords = 600      // bytes of a message that is passed on
)

// condition is a condition of a pod or a node.
type condition struct{ Type, Status, Reason, Message string }

// state is a container's state; only one of its fields is set.
type state struct {
	Waiting    *struct{ Reason, Message string }
	Running    *struct{}
	Terminated *struct {
		ExitCode        int64
		Reason, Message string
	}
}

// pod has the fields of a pod that this package reads.
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

// containerStatus is a node's report on a container.
type containerStatus struct {
	Name, ContainerID, ImageID string
	State                      state
}

// change is one event of a watch.
type change struct {
	Type   string // ADDED, MODIFIED, DELETED, ERROR
	Object pod
}

// event is an event of an object.
type event struct{ Type, Reason, Message string }

// node has the fields of a node that this package reads.
type node struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Status struct {
		NodeInfo struct {
			BootID, KubeletVersion, ContainerRuntimeVersion string
		}
		Conditions []condition
	}
}

// job has the fields of a job that this package reads.
type job struct {
	Metadata struct {
		Name, UID           string
		Labels, Annotations map[string]string
	}
}

// list is the answer to a request for several objects.
type list[T any] struct{ Items []T }

// readChange reads the next event of a watch; io.EOF ends it.
func readChange(from *json.Decoder) (c change, err error) {
	if err := from.Decode(&c); err != nil {
		if errors.Is(err, io.EOF) {
			return c, io.EOF
		}
		return c, fmt.Errorf("read a pod's change from kubectl's output: %w", err)
	}
	return c, nil
}

// readAs decodes an answer with one object.
func readAs[T any](answer []byte) (v T, err error) {
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read kubectl's output: %w", err)
	}
	return v, nil
}

// readEach decodes an answer with several objects in sequence.
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

// said makes a text of the cluster safe to print: one line, without control characters, of at most
// maxWords bytes.
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

// hexID matches a container's id after the name of its runtime. It is strict because the id becomes
// part of a path.
var hexID = lazyregexp.New(`^[a-z0-9.-]+://([0-9a-f]{12,64})$`)

// status returns the status of the pod's only container; zero value: its node has not reported it.
func (p *pod) status() (s containerStatus) {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == container {
			return c
		}
	}
	return s
}

// state returns the state of the container.
func (p *pod) state() state { return p.status().State }

// containerID returns the runtime's id of the container; empty: none yet.
func (p *pod) containerID() string {
	if m := hexID.FindStringSubmatch(p.status().ContainerID); m != nil {
		return m[1]
	}
	return ""
}

// image returns the digest of the started image.
func (p *pod) image() string { return said(p.status().ImageID) }

// uidForm matches an object's UID (RFC 4122), which becomes part of a path.
var uidForm = lazyregexp.New(`^[0-9a-f-]{8,64}$`)

// nameForm matches an object's name (RFC 1123), which becomes an argument of kubectl and must not
// look like a flag.
var nameForm = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// isOf reports whether a pod belongs to a job by its owner: any user of the namespace could copy
// labels.
func (p *pod) isOf(job string) bool {
	return nameForm.MatchString(p.Metadata.Name) && uidForm.MatchString(p.Metadata.UID) &&
		slices.ContainsFunc(p.Metadata.OwnerReferences, func(o struct{ UID string }) bool {
			return o.UID == job && job != ""
		})
}

// condition returns the condition of a type; nil: there is none.
func (p *pod) condition(kind string) *condition {
	for i, c := range p.Status.Conditions {
		if c.Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
