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

// grants is where the rights are that a lab needs.
const grants = "deploy/kubernetes/rbac.yaml"

// What kubectl and the API say when something is wrong. Both are asked in English only.
var (
	denied = lazyregexp.New(`cannot ([a-z]+) resource "([a-z/]+)" in API group`)
	absent = lazyregexp.New(`namespaces? "([^"]{1,63})" not found`)
	away   = lazyregexp.New(`(?i)connection refused|was refused|no such host|i/o timeout|` +
		`unable to connect to the server|connection reset|unexpected EOF|no route to host|` +
		`Client\.Timeout|TLS handshake timeout|etcdserver|apiserver not ready|` +
		`the server is currently unable|http2: client connection lost|deadline exceeded`)
	unknown = lazyregexp.New(`(?i)unauthorized|provide credentials|must be logged in|` +
		`getting credentials|certificate has expired|unknown authority`)
	unset = lazyregexp.New(`(?i)current-context is not set|context was not found|` +
		`context ".*" does not exist|no configuration has been provided|localhost:8080`)
)

// hintOf says what to do about what kubectl has said; empty: nobody knows better.
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

// unreachable says whether an error of a connection is that no way leads there.
func unreachable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// lacking says which rights this user has not.
func lacking(lacks []string, namespace string) string {
	return fmt.Sprintf("this user may not %s in namespace %s; %s", strings.Join(lacks, ", "),
		namespace, granting(namespace))
}

func granting(namespace string) string {
	return fmt.Sprintf("kubectl apply -n %s -f %s grants all required rights", namespace, grants)
}

// explained adds what to do to an error of kubectl.
func explained(err error, namespace string) error {
	if err == nil {
		return nil
	}
	if hint := hintOf(err.Error(), namespace); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// isAway says whether it is the way to the API that failed.
func isAway(err error) bool { return err != nil && away.MatchString(err.Error()) }

// hopeless are what a container may wait for without end, and what to do.
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

// stuck says why a pod will never run, with a hint; empty: it may yet.
func (p *pod) stuck() string {
	if w := p.state().Waiting; w != nil && hopeless[w.Reason] != "" {
		return fmt.Sprintf("%s: %s; %s", said(w.Reason), said(w.Message), hopeless[w.Reason])
	}
	if t := p.state().Terminated; t != nil && slices.Contains(notStarted, t.Reason) {
		return fmt.Sprintf("%s: %s", said(t.Reason), said(t.Message))
	}
	return ""
}

// notStarted is how a container ends that never ran.
var notStarted = []string{"StartError", "ContainerCannotRun", "ContainerStatusUnknown"}

// pending says why a pod is not started, from what has happened to it and its job: the last warning
// that says something; empty: nothing was warned of.
func pending(events []event) (why string, hopeless bool) {
	for _, e := range events {
		switch {
		case e.Reason == "FailedCreate": // of the job: its pod is refused
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

// hintPending says what to do about a pod that no node takes.
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

// ended says how the pod ended, as plain processes are said to end, and why where the cluster ended
// it; ok is false as long as it runs.
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

// reasons are why the cluster ended a pod.
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

// hostPort is where a URL leads; empty: it does not say.
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
