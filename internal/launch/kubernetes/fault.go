package kubernetes

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/launch/cgroup"
)

// grants is the manifest with the rights that a lab needs.
const grants = "deploy/kubernetes/rbac.yaml"

// Error texts of kubectl and the API, which are in English only.
var (
	denied = lazyregexp.New(`cannot ([a-z]+) resource "([a-z/]+)" in API group`)
	absent = lazyregexp.New(`namespaces? "([^"]{1,63})" not found`)
	away   = lazyregexp.New(`(?i)connection refused|was refused|no such host|i/o timeout|` +
		`unable to connect to the server|connection reset|unexpected EOF|no route to host|` +
		`Client\.Timeout|TLS handshake timeout|etcdserver|apiserver not ready|` +
		`the server is currently unable|http2: client connection lost|deadline exceeded`)
	unknown = lazyregexp.New(`(?i)unauthorized|provide credentials|must be logged in|` +
		`getting credentials|certificate has expired|unknown authority`)
	unset = lazyregexp.New(`(?i)current-context (is not set|must exist)|context was not found|` +
		`context ".*" does not exist|no configuration has been provided|localhost:8080`)
)

// hintOf returns what the user can do about an error text of kubectl; empty: unknown.
func hintOf(words, namespace string) string {
	switch m := denied.FindStringSubmatch(words); {
	case m != nil:
		return fmt.Sprintf("this user may not %s %s in namespace %s: %s", m[1], m[2], namespace,
			granting(namespace))
	case strings.Contains(words, "exceeded quota"):
		return "the namespace's quota is used up: free some of it, or lower the limits of the suite"
	case strings.Contains(words, "violates PodSecurity"):
		return "the namespace does not admit the pod: its agent is mounted from the node, which " +
			"only the Pod Security level privileged allows"
	case strings.Contains(words, "being terminated"):
		return "the namespace is being deleted: choose another with PRONY_KUBERNETES_NAMESPACE"
	case unset.MatchString(words):
		return "kubectl has no configured cluster: set KUBECONFIG, choose one with kubectl " +
			"config use-context, or with PRONY_KUBERNETES_CONTEXT"
	case unknown.MatchString(words):
		return "the cluster does not accept this user: log in as your cluster requires for kubectl"
	case away.MatchString(words):
		return "the API server does not respond: check that the cluster runs and that kubectl " +
			"uses the right context"
	}
	if m := absent.FindStringSubmatch(words); m != nil {
		return fmt.Sprintf("create the namespace with kubectl create namespace %s, or choose "+
			"another with PRONY_KUBERNETES_NAMESPACE", m[1])
	}
	return ""
}

// unreachable reports whether a connection failed because no route exists.
func unreachable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// lacking describes the rights that this user lacks.
func lacking(lacks []string, namespace string) string {
	hint := granting(namespace)
	if slices.Contains(lacks, noding.words()) {
		hint += "; listing nodes is not needed if PRONY_KUBERNETES_NODES names labels of the node"
	}
	return fmt.Sprintf("this user may not %s in namespace %s; %s", strings.Join(lacks, ", "),
		namespace, hint)
}

func granting(namespace string) string {
	return fmt.Sprintf("kubectl apply -n %s -f %s makes the required roles; the first lines of "+
		"this file have the commands that bind them to a user", namespace, grants)
}

// explained adds a hint to an error of kubectl.
func explained(err error, namespace string) error {
	if err == nil {
		return nil
	}
	if hint := hintOf(err.Error(), namespace); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// isAway reports whether the API server could not be reached.
func isAway(err error) bool { return err != nil && away.MatchString(err.Error()) }

// hopeless maps reasons for which a container waits without end to hints.
var hopeless = map[string]string{
	"ErrImageNeverPull": "the node does not have the image, and an image without a registry in " +
		"its name is never pulled: load it on the node (kind load docker-image, minikube image " +
		"load, or docker save IMAGE | ctr -n k8s.io images import -), or set " +
		"PRONY_KUBERNETES_LOAD to a command that does",
	"ErrImagePull": "the node cannot pull the image: check its name and the node's " +
		"permission to pull it",
	"ImagePullBackOff": "the node cannot pull the image: check its name and the node's " +
		"permission to pull it",
	"InvalidImageName":           "the name is not a valid image name",
	"CreateContainerConfigError": "the node does not accept the container's settings",
	"CreateContainerError":       "the node's container runtime cannot create the container",
	"RunContainerError":          "the node's container runtime cannot run the container",
}

// stuck returns why a pod will never run, with a hint; empty: it may still run.
func (p *pod) stuck() string {
	if w := p.state().Waiting; w != nil && hopeless[w.Reason] != "" {
		return fmt.Sprintf("%s: %s; %s", said(w.Reason), said(w.Message), hopeless[w.Reason])
	}
	if t := p.state().Terminated; t != nil && slices.Contains(notStarted, t.Reason) {
		return fmt.Sprintf("%s: %s", said(t.Reason), said(t.Message))
	}
	return ""
}

// notStarted are the end reasons of containers that never ran.
var notStarted = []string{"StartError", "ContainerCannotRun", "ContainerStatusUnknown"}

// pending returns why a pod has not started, from the events of the pod and its job: the last
// specific warning; empty: no warning.
func pending(events []event) (why string, hopeless bool) {
	for _, e := range events {
		switch {
		case e.Reason == "FailedCreate": // of the job: its pod was rejected
			return said(e.Message), true
		case e.Reason == "FailedScheduling", e.Reason == "FailedMount",
			e.Reason == "FailedCreatePodSandBox", e.Reason == "FailedAttachVolume":
			why = said(e.Reason) + ": " + said(e.Message)
		case e.Type == "Warning" && why == "":
			why = said(e.Reason) + ": " + said(e.Message)
		}
	}
	return why, false
}

// hintPending returns what the user can do about a pod that no node accepts.
func hintPending(why string) string {
	switch {
	case strings.Contains(why, "Insufficient cpu"):
		return "free processors on the node (Prony runs one pod at a time), or lower " +
			"limits.cpus: a node reserves some processors for itself"
	case strings.Contains(why, "Insufficient memory"):
		return "free memory on the node, or lower limits.memory"
	case strings.Contains(why, "node affinity/selector"):
		return "no node has the labels of PRONY_KUBERNETES_NODES, or the labels that Prony " +
			"itself requires"
	case strings.Contains(why, "untolerated taint"):
		return "the node has a taint, and Prony's pods tolerate no taint: choose another node"
	case strings.Contains(why, "exceeded quota"), strings.Contains(why, "violates PodSecurity"):
		return hintOf(why, "")
	}
	return "kubectl describe shows more"
}

// ended describes how the pod ended, in the words for plain processes, with the reason if the
// cluster ended it; ok is false while it runs.
func (p *pod) ended() (how string, outOfMemory, ok bool) {
	t := p.state().Terminated
	if t == nil && p.Status.Phase != "Failed" && p.Status.Phase != "Succeeded" {
		return "", false, false
	}
	if t != nil {
		how = cgroup.ExitWords(t.ExitCode)
		outOfMemory = t.Reason == "OOMKilled"
	}
	for _, why := range p.reasons() {
		if how != "" {
			how += "; "
		}
		how += why
	}
	if how == "" {
		how = "unknown, because the node did not report the reason"
	}
	return how, outOfMemory, true
}

// reasons returns why the cluster ended a pod.
func (p *pod) reasons() (out []string) {
	if r := said(p.Status.Reason); r != "" {
		out = append(out, strings.TrimSuffix("the node "+
			"reported "+r+": "+said(p.Status.Message), ": "))
	}
	c := p.condition("DisruptionTarget")
	if c != nil && c.Status == "True" && p.Status.Reason == "" {
		out = append(out, "the cluster reported "+said(c.Reason)+": "+said(c.Message))
	}
	return out
}

// hostPort returns HOST:PORT of a URL; empty: it has none.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
