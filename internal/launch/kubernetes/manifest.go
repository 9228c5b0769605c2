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

// object is what Kubernetes reads, as JSON: keys come out sorted, so that a manifest is always the
// same text.
type object = map[string]any

// Labels and annotations of what a lab makes. They tell whose it is, so that nobody removes
// another's.
const (
	labelLab = "prony.lab" // one launcher of one process, among all that ever were
	labelPod = "prony.pod" // one job with its pod and its service
	// of the lab's process, for whoever looks from the same machine
	noteProcess   = "prony.process"   // PID-BIRTH
	noteBoot      = "prony.boot"      // of the kernel
	noteNamespace = "prony.namespace" // of process numbers
)

// lab is one launcher of one process of this program, told from any other that ever was: in a
// cluster others have the same numbers.
type lab struct {
	ID        string `json:"id"`
	Process   string `json:"process"` // PID-BIRTH
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"` // of process numbers
}

// count tells launchers of a process, and pods of a launcher.
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

// notes are the annotations by which a lab on the same machine knows whether this one lives.
func (l lab) notes() object {
	return object{noteProcess: l.Process, noteBoot: l.Boot, noteNamespace: l.Namespace}
}

// next names what the lab starts.
func (l lab) next() string { return fmt.Sprintf("prony-%s-%d", l.ID, count.Add(1)) }

// outlived says whether the lab that made a job is gone. Of one on another machine, in another boot
// or another PID namespace nobody here can tell: the job's deadline is for those.
func (l lab) outlived(j job) bool {
	notes := j.Metadata.Annotations
	if notes[noteBoot] != l.Boot || notes[noteNamespace] != l.Namespace {
		return false
	}
	return cgroup.Gone(notes[noteProcess])
}

// anybody is who a pod runs as: the user of this program's own images. Nobody here has looked into
// the image, and a node refuses to start one as its own user where that has a name, or none.
const anybody = 1001

// Bounds of what the cluster keeps when nobody is left to remove it.
const (
	// keptEnded is how long an ended job stays, for the lab to read how it ended, in seconds.
	keptEnded = 300
	// jobSpare is what a job has beyond its pod's own deadline, so that the node, which says why,
	// comes first; in seconds.
	jobSpare = 60
	// tmpSize is the one place that a service may write to. It counts as the service's memory.
	tmpSize = "256Mi"
)

// order is what a manifest says beside a launch.Spec.
type order struct {
	name     string
	lab      lab
	nodes    map[string]string // labels that the node must have
	node     string            // its name; empty: any with these labels
	lifetime time.Duration     // after which the cluster ends it, whoever lives
}

// jobOf is the manifest of a job of one pod for a target.
func jobOf(s launch.Spec, o order) object {
	return jobAround(object{
		"securityContext": object{"runAsNonRoot": true, "runAsUser": anybody,
			"runAsGroup": anybody, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{containerOf(s)}, "volumes": volumesOf(s),
	}, o)
}

// jobAround has a job of one pod, which the cluster itself removes with its pod: the deadline ends
// it, and the time to live after the end removes it.
func jobAround(pod object, o order) object {
	labels := object{labelLab: o.lab.ID, labelPod: o.name}
	seconds := int64(o.lifetime / time.Second)
	maps.Copy(pod, object{
		"restartPolicy": "Never", "automountServiceAccountToken": false,
		"enableServiceLinks": false, "activeDeadlineSeconds": seconds,
		"terminationGracePeriodSeconds": 1, // where a Stop has a grace it says so itself
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

// onNode has a pod go to the node of a name, whose labels this user need not be allowed to see.
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
	// Requests that equal limits, of processors and memory, make the pod Guaranteed, and whole
	// processors let the static CPU manager give it cores of its own.
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

// container is the name of the one container of a pod.
const container = "service"

// quantity is processor time per second as Kubernetes has it: whole or in thousandths.
func quantity(cpus float64) string {
	if milli := int64(math.Round(cpus * 1000)); milli%1000 != 0 {
		return fmt.Sprintf("%dm", milli)
	}
	return strconv.FormatInt(int64(math.Round(cpus)), 10)
}

// pullOf says whether a node may fetch an image that it has not. A name without a registry would be
// asked of a public one, where anybody may have taken it.
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
		// $(NAME) is another variable to Kubernetes, and $$ a dollar.
		out = append(out, object{"name": name, "value": strings.ReplaceAll(value, "$", "$$")})
	}
	return out
}

// mounted are those of a spec's mounts that the service is told of: every other one would be a
// right to the node for nothing.
func mounted(s launch.Spec) (out []launch.Mount) {
	reported := strings.Join(s.Args, "\x00") + "\x00" + strings.Join(s.Env, "\x00")
	for _, m := range s.Mounts {
		if strings.Contains(reported, m.Path) {
			out = append(out, m)
		}
	}
	return out
}

func mountsOf(s launch.Spec) []object {
	out := []object{{"name": "tmp", "mountPath": "/tmp"}}
	for i, m := range mounted(s) {
		out = append(out, object{"name": fmt.Sprint("host-", i), "mountPath": m.Path,
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

// serviceOf is the manifest of a service before a job's pod. It goes with the job.
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

// rights are all that a lab asks of the API in its namespace, as deploy/kubernetes/rbac.yaml grants
// them; of the cluster it asks for its nodes.
var rights = []right{
	{"create", "batch", "jobs", ""}, {"list", "batch", "jobs", ""}, {"delete", "batch", "jobs", ""},
	{"get", "batch", "jobs", ""}, {"watch", "batch", "jobs", ""},
	{"get", "", "pods", ""}, {"list", "", "pods", ""}, {"watch", "", "pods", ""},
	{"delete", "", "pods", ""}, {"get", "", "pods", "log"}, {"list", "", "events", ""},
}

// servicing are those for a service, attaching those for a reader, whose stream some versions of
// kubectl get and others create, and noding that of the cluster.
var (
	servicing = []right{{"create", "", "services", ""}}
	attaching = []right{{"create", "", "pods", "attach"}, {"get", "", "pods", "attach"}}
	noding    = right{"list", "", "nodes", ""}
)

// right is a verb on a resource of a group.
type right struct{ verb, group, resource, sub string }

// words are as kubectl auth can-i has them: "create jobs", "get pods/log".
func (r right) words() string {
	if r.sub != "" {
		return r.verb + " " + r.resource + "/" + r.sub
	}
	return r.verb + " " + r.resource
}

// reviewOf asks the API whether this user has rights, one object each, which needs none.
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

// text is a manifest for kubectl.
func text(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic("kubernetes: a manifest of strings and numbers cannot be encoded as " +
			"JSON: " + err.Error())
	}
	return b
}
