package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// object is a Kubernetes object for JSON. Its keys are sorted on output, so that a manifest always
// has the same text.
type object = map[string]any

// Labels and annotations of all objects that a lab makes. They identify the lab, so that no other
// lab removes them.
const (
	labelLab = "prony.lab" // one launcher of one process
	labelPod = "prony.pod" // one job with its pod and its service
	// Of the lab's process, for labs on the same machine.
	noteProcess   = "prony.process"   // PID-BIRTH
	noteBoot      = "prony.boot"      // of the kernel
	noteNamespace = "prony.namespace" // of process numbers
)

// lab identifies one launcher of one process of this program. The hash is needed because process
// numbers repeat between the machines of a cluster.
type lab struct {
	ID        string `json:"id"`
	Process   string `json:"process"` // PID-BIRTH
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"` // of process numbers
}

// count numbers the launchers of a process and the pods of a launcher.
var count atomic.Int64

func thisLab() (lab, error) {
	ownWhose, err := cgroup.Own()
	if err != nil {
		return lab{}, err
	}
	l := lab{Process: ownWhose.Process, Boot: ownWhose.Boot, Namespace: ownWhose.Namespace}
	sum := sha256.Sum256(fmt.Append(nil, l, count.Add(1)))
	l.ID = hex.EncodeToString(sum[:8])
	return l, nil
}

// notes returns the annotations by which a lab on the same machine checks whether this one has
// ended.
func (l lab) notes() object {
	return object{noteProcess: l.Process, noteBoot: l.Boot, noteNamespace: l.Namespace}
}

// next returns a name for the next job.
func (l lab) next() string { return fmt.Sprintf("prony-%s-%d", l.ID, count.Add(1)) }

// outlived reports whether the lab that made a job has ended. It returns false for labs on another
// machine, in another boot or another PID namespace, which cannot be checked: the deadline ends
// those jobs.
func (l lab) outlived(j job) bool {
	notes := j.Metadata.Annotations
	if notes[noteBoot] != l.Boot || notes[noteNamespace] != l.Namespace {
		return false
	}
	return cgroup.Gone(notes[noteProcess])
}

// anybody is the user of all pods: that of this program's own images. The image's own user is not
// used, because a node refuses to start an image whose user has a name, or is missing.
const anybody = 1001

// Limits on what remains in the cluster if no lab removes it.
const (
	// keptEnded is how long an ended job remains so that its result can be read, in seconds.
	keptEnded = 300
	// jobSpare is what the deadline of a job exceeds its pod's, in seconds. The pod's comes first
	// because its node reports the reason.
	jobSpare = 60
	// tmpSize is the size of /tmp, the only place that a service may write to. It counts as the
	// service's memory.
	tmpSize = "256Mi"
)

// order holds the parts of a manifest that are not in a launch.Spec.
type order struct {
	name     string
	lab      lab
	nodes    map[string]string // labels that the node must have
	node     string            // its name; empty: any node with these labels
	lifetime time.Duration     // after which the cluster ends the pod
}

// jobOf returns the manifest of a job of one pod for a target.
func jobOf(s launch.Spec, o order) object {
	return jobAround(object{
		"securityContext": object{"runAsNonRoot": true, "runAsUser": anybody,
			"runAsGroup": anybody, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{containerOf(s)}, "volumes": volumesOf(s),
	}, o)
}

// jobAround returns a job of one pod, which the cluster itself ends at its deadline, and removes
// after its time to live.
func jobAround(pod object, o order) object {
	labels := object{labelLab: o.lab.ID, labelPod: o.name}
	seconds := int64(o.lifetime / time.Second)
	maps.Copy(pod, object{
		"restartPolicy": "Never", "automountServiceAccountToken": false,
		"enableServiceLinks": false, "activeDeadlineSeconds": seconds,
		"terminationGracePeriodSeconds": 1, // Stop passes its own grace
	})
	if len(o.nodes) > 0 {
		pod["nodeSelector"] = o.nodes
	}
	if o.node != "" {
		pod["affinity"] = onNode(o.node)
	}
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": o.name, "labels": labels, "annotations": o.lab.notes()},
		"spec": object{
			"activeDeadlineSeconds": seconds + jobSpare, "ttlSecondsAfterFinished": keptEnded,
			"backoffLimit": 0, "completions": 1, "parallelism": 1,
			"template": object{"metadata": object{"labels": labels}, "spec": pod},
		},
	}
}

// onNode returns an affinity to the node of this name. It does not need the right to read its
// labels.
func onNode(name string) object {
	return object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": []object{{"matchFields": []object{{"key": "metadata.name",
			"operator": "In", "values": []string{name}}}}}}}}
}

func containerOf(s launch.Spec) object {
	c := object{
		"name": container, "image": s.Image, "imagePullPolicy": pullOf(s.Image),
		"args": s.Args, "env": envOf(s.Env),
		"securityContext": object{"allowPrivilegeEscalation": false, "privileged": false,
			"readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}},
		"volumeMounts": mountsOf(s),
	}
	if s.Port > 0 {
		c["ports"] = []object{{"containerPort": s.Port}}
	}
	// Requests equal to limits, of processors and memory, make the pod Guaranteed. With whole
	// processors, the static CPU manager gives such a pod exclusive cores.
	retained := object{}
	if s.CPUs > 0 {
		retained["cpu"] = quantity(s.CPUs)
	}
	if s.MemoryBytes > 0 {
		retained["memory"] = strconv.FormatInt(s.MemoryBytes, 10)
	}
	if len(retained) > 0 {
		c["resources"] = object{"requests": retained, "limits": retained}
	}
	return c
}

// container is the name of a pod's only container.
const container = "service"

// quantity formats processor time per second for Kubernetes: whole or in thousandths.
func quantity(cpus float64) string {
	if milli := int64(math.Round(cpus * 1000)); milli%1000 != 0 {
		return fmt.Sprintf("%dm", milli)
	}
	return strconv.FormatInt(int64(math.Round(cpus)), 10)
}

// pullOf returns the pull policy of an image. A name without a registry is never pulled: a node
// would ask a public registry, where anybody may have registered the name.
func pullOf(image string) string {
	first, _, more := strings.Cut(image, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return "IfNotPresent"
	}
	return "Never"
}

func envOf(env []string) []object {
	out := []object{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		// In Kubernetes $(NAME) is a variable, and $$ a dollar sign.
		out = append(out, object{"name": name, "value": strings.ReplaceAll(value, "$", "$$")})
	}
	return out
}

// mounted returns the mounts of a spec that its arguments or environment mention, or that its image
// expects at a path. Any other would give access to the node without need.
func mounted(s launch.Spec) (out []launch.Mount) {
	reported := strings.Join(s.Args, "\x00") + "\x00" + strings.Join(s.Env, "\x00")
	for _, m := range s.Mounts {
		if m.Destination != "" || strings.Contains(reported, m.Path) {
			out = append(out, m)
		}
	}
	return out
}

func mountsOf(s launch.Spec) []object {
	out := []object{{"name": "tmp", "mountPath": "/tmp"}}
	for i, m := range mounted(s) {
		out = append(out, object{"name": fmt.Sprint("host-", i), "mountPath": m.Target(),
			"readOnly": !m.Write})
	}
	return out
}

func volumesOf(s launch.Spec) []object {
	out := []object{{"name": "tmp", "emptyDir": object{"medium": "Memory",
		"sizeLimit": tmpSize}}}
	for i, m := range mounted(s) {
		out = append(out, object{"name": fmt.Sprint("host-", i),
			"hostPath": object{"path": m.Path}})
	}
	return out
}

// serviceOf returns the manifest of a service before a job's pod. It is removed with the job.
func serviceOf(o order, uid string, port int) object {
	return object{
		"apiVersion": "v1", "kind": "Service",
		"metadata": object{"name": o.name,
			"labels": object{labelLab: o.lab.ID, labelPod: o.name},
			"ownerReferences": []object{{"apiVersion": "batch/v1", "kind": "Job",
				"name": o.name, "uid": uid}}},
		"spec": object{"selector": object{labelPod: o.name},
			"ports": []object{{"port": port, "targetPort": port}}},
	}
}

// rights are all rights that a lab needs in its namespace, as granted by
// deploy/kubernetes/rbac.yaml.
var rights = []right{
	{"create", "batch", "jobs", ""}, {"list", "batch", "jobs", ""}, {"delete", "batch", "jobs", ""},
	{"get", "batch", "jobs", ""}, {"watch", "batch", "jobs", ""},
	{"get", "", "pods", ""}, {"list", "", "pods", ""}, {"watch", "", "pods", ""},
	{"delete", "", "pods", ""}, {"get", "", "pods", "log"}, {"list", "", "events", ""},
}

// servicing are the rights for a service, attaching those for a reader (some versions of kubectl
// get its stream, others create it), and noding is the right on cluster level.
var (
	servicing = []right{{"create", "", "services", ""}}
	attaching = []right{{"create", "", "pods", "attach"}, {"get", "", "pods", "attach"}}
	noding    = right{"list", "", "nodes", ""}
)

// right is a verb on a resource of an API group.
type right struct{ verb, group, resource, sub string }

// words formats a right for kubectl auth can-i: "create jobs", "get pods/log".
func (r right) words() string {
	if r.sub != "" {
		return r.verb + " " + r.resource + "/" + r.sub
	}
	return r.verb + " " + r.resource
}

// reviewOf returns requests to check rights of this user, one object each. They need no right.
func reviewOf(namespace string, item []right) object {
	var items []object
	for _, r := range item {
		request := object{"verb": r.verb, "group": r.group, "resource": r.resource,
			"subresource": r.sub}
		if r != noding {
			request["namespace"] = namespace
		}
		items = append(items, object{"apiVersion": "authorization.k8s.io/v1",
			"kind": "SelfSubjectAccessReview", "spec": object{"resourceAttributes": request}})
	}
	return object{"apiVersion": "v1", "kind": "List", "items": items}
}

// text encodes a manifest for kubectl.
func text(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic("kubernetes: a manifest of strings and numbers cannot be encoded as " +
			"JSON: " + err.Error())
	}
	return b
}
