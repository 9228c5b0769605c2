// Package kubernetes launches a target as a pod of a Kubernetes cluster, under limits that its
// kubelet sets and that are read back from the kernel of its node, and stops it. It calls kubectl,
// so that the user's own cluster, context and login apply.
//
// Launch makes a job of one pod, and with Options.Service a service before it. Prony watches the
// node for the moment in which the container's program begins, and learns its end from the kernel.
// During a window it sends no requests to the API; one stream transports the log.
//
//	on the pod's node              lab ─ site ─► here: cgroups, /proc
//	elsewhere      lab ─ site ─► far ─ kubectl attach ─► reader, a pod on that node ─► its here
//
// Nothing survives the lab: Stop removes the job with its pod and service, also after a failed
// launch; a guard (this program again, see Guard) does so if the lab is killed; New removes earlier
// leftovers of this machine; and the cluster itself ends and removes each job at its deadline.
//
// Non-goals: it builds and pushes no images, and starts no system of several processes.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/guard"
)

// Names of the launchers in records and flags.
const (
	Name        = "kubernetes"
	ServiceName = "kubernetes-service"
)

// Options select the cluster and the place of pods in it.
type Options struct {
	// Service makes pods reachable through a service of the cluster, not by their own address.
	Service bool
	Context string // of kubectl; empty: the current one
	// Namespace is the namespace of the pods; empty: the context's.
	Namespace string
	// Nodes are labels that a pod's node must have: NAME=VALUE, separated by commas; empty: the
	// node that this program runs on.
	Nodes string
	// Load is a program with arguments that copies an image to the node; empty: the image is there.
	Load string
	// Lifetime is the time after which the cluster ends a pod; 0: DefaultLifetime.
	Lifetime time.Duration
	// Reader is inPod if a reader on the pod's node must always read its limits and use; empty:
	// only if this machine is not that node.
	Reader string
	// ReaderImage is an image of this program; empty: the name that `make release` gives it.
	ReaderImage string
	// Dir is a folder in which the guard notes what it could not remove (kubernetes-guard.log).
	Dir string
}

// DefaultLifetime exceeds the length of a trial, and limits how long an orphaned pod occupies a
// core.
const DefaultLifetime = 2 * time.Hour

// shortest is the least lifetime; no trial is shorter.
const shortest = time.Minute

// OptionsOf reads options from environment variables through get, such as os.Getenv.
func OptionsOf(get func(name string) string) (o Options, err error) {
	o = Options{Context: get("PRONY_KUBERNETES_CONTEXT"),
		Namespace: get("PRONY_KUBERNETES_NAMESPACE"), Nodes: get("PRONY_KUBERNETES_NODES"),
		Load: get("PRONY_KUBERNETES_LOAD"), Reader: get("PRONY_KUBERNETES_READER"),
		ReaderImage: get("PRONY_KUBERNETES_READER_IMAGE")}
	if o.Reader != "" && o.Reader != inPod {
		return o, fmt.Errorf("read PRONY_KUBERNETES_READER: the value is %q; set it to %s, or "+
			"leave it empty",
			o.Reader, inPod)
	}
	const lifetime = "PRONY_KUBERNETES_LIFETIME"
	if text := get(lifetime); text != "" {
		if o.Lifetime, err = time.ParseDuration(text); err != nil || o.Lifetime < shortest {
			return o, fmt.Errorf("read %s: the value is %q; set a time of at least %v, such as 90m",
				lifetime, text,
				shortest)
		}
	}
	_, err = selector(o.Nodes)
	return o, err
}

// selector parses labels.
func selector(nodes string) (map[string]string, error) {
	out := map[string]string{}
	if nodes == "" {
		return out, nil
	}
	for pair := range strings.SplitSeq(nodes, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("read PRONY_KUBERNETES_NODES: %q has no label of the form "+
				"NAME=VALUE", pair)
		}
		out[name] = value
	}
	return out, nil
}

// Launcher starts pods. It implements launch.Launcher.
type Launcher struct {
	cluster *cluster
	options Options
	self    lab
	guard   *guard.Guard
	nodes   map[string]string // labels of a pod's node
	node    node              // on which pods run, as the cluster describes it; may be empty
	known   []node            // all nodes that this user may see
	far     bool              // a reader on another node reads limits and use
	outpost outpost
	server  string   // version of the API server
	address string   // of the API server, to check whether it is up; may be empty
	loaded  sync.Map // images copied to the node
	live    sync.Map // of *proc
}

var _ launch.Launcher = (*Launcher)(nil)

// New connects to the cluster, checks the rights of this user, finds this machine among the nodes
// and removes leftovers of ended labs of this machine, described in reaped.
func New(ctx context.Context, o Options) (l *Launcher, reaped []string, err error) {
	l = &Launcher{options: o}
	if l.nodes, err = selector(o.Nodes); err != nil {
		return nil, nil, err
	}
	if l.self, err = thisLab(); err != nil {
		return nil, nil, err
	}
	if l.cluster, err = find(ctx, o.Context, o.Namespace); err != nil {
		return nil, nil, err
	}
	if err := l.permitted(ctx); err != nil {
		return nil, nil, fmt.Errorf("use Kubernetes: %w", err)
	}
	if err := l.meetNode(ctx); err != nil {
		return nil, nil, fmt.Errorf("use Kubernetes: %w", err)
	}
	if l.far {
		if err := l.may(ctx, attaching); err != nil {
			return nil, nil, fmt.Errorf("use Kubernetes with a reader on the pod's node: %w", err)
		}
	}
	if reaped, err = sweep(ctx, l.cluster, labelLab, l.self.outlived); err != nil {
		return nil, reaped, fmt.Errorf("remove pods that earlier runs left in the cluster: %w", err)
	}
	l.address = l.cluster.listens(ctx)
	if l.server, err = l.cluster.version(ctx); err != nil {
		return nil, reaped, fmt.Errorf("use Kubernetes: %w", err)
	}
	w := watch{Cluster: *l.cluster, Lab: l.self, Dir: o.Dir}
	if l.guard, err = post.Start(w, os.Environ()...); err != nil {
		return nil, reaped, fmt.Errorf("start the guard process that removes pods if Prony is "+
			"killed: %w", err)
	}
	return l, reaped, nil
}

// permitted checks all rights of this user at once, and whether the namespace accepts a job.
func (l *Launcher) permitted(ctx context.Context) error {
	need := slices.Clone(rights)
	if l.options.Service {
		need = append(need, servicing...)
	}
	if l.options.Nodes == "" && l.options.Reader == "" {
		need = append(need, noding)
	}
	if err := l.may(ctx, need); err != nil {
		return err
	}
	none := jobOf(launch.Spec{Image: "none"}, l.order())
	_, err := l.cluster.create(ctx, none, none, "--dry-run=server", "--output=name")
	return err
}

// may returns an error that lists which of these rights the user lacks.
func (l *Launcher) may(ctx context.Context, need []right) error {
	requested := reviewOf(l.cluster.Namespace, need)
	answer, err := l.cluster.create(ctx, requested, requested, "--output=json")
	if err != nil {
		return err
	}
	got, err := readEach[review](answer)
	if err != nil {
		return err
	}
	if len(got) != len(need) {
		return fmt.Errorf("the cluster reported only %d of %d rights", len(got), len(need))
	}
	var lacks []string
	for i, r := range got {
		if !r.Status.Allowed {
			lacks = append(lacks, need[i].words())
		}
	}
	if len(lacks) > 0 {
		return errors.New(lacking(lacks, l.cluster.Namespace))
	}
	return nil
}

// review is the API's answer about one right.
type review struct{ Status struct{ Allowed bool } }

// meetNode finds the node that is this machine, and sends pods there unless the user names labels.
// For pods on other nodes it plans a reader.
func (l *Launcher) meetNode(ctx context.Context) error {
	l.far = l.options.Reader == inPod
	answer, err := l.cluster.ask(ctx, nil, "get", "nodes", "--output=json")
	if err != nil && (l.far || l.options.Nodes != "") {
		return nil // with a named node, the right to list all nodes is not needed
	}
	if err != nil {
		return err
	}
	all, err := readAs[list[node]](answer)
	if err != nil {
		return err
	}
	l.known = all.Items
	index := slices.IndexFunc(all.Items, func(n node) bool {
		if n.Status.NodeInfo.BootID != l.self.Boot {
			return false
		}
		for name, value := range l.nodes {
			if n.Metadata.Labels[name] != value {
				return false
			}
		}
		return true
	})
	if l.far = l.far || index < 0; l.far {
		return nil
	}
	l.node = all.Items[index]
	const host = "kubernetes.io/hostname"
	if l.options.Nodes == "" {
		l.nodes = map[string]string{host: l.node.Metadata.Labels[host]}
	}
	return nil
}

// version returns the version of the API server.
func (c *cluster) version(ctx context.Context) (string, error) {
	got, err := look[struct{ ServerVersion struct{ GitVersion string } }](ctx, c, "version")
	return said(got.ServerVersion.GitVersion), err
}

// listens returns HOST:PORT of the API server; empty: unknown.
func (c *cluster) listens(ctx context.Context) string {
	output, _ := c.view(ctx, "{.clusters[0].cluster.server}") // an error counts as unknown
	return hostPort(output)
}

// Listen implements launch.Launcher. The address of a pod is unknown before it starts, so it must
// listen on all.
func (l *Launcher) Listen() string { return "0.0.0.0" }

func (l *Launcher) order() order {
	return order{name: l.self.next(), lab: l.self, nodes: l.nodes, lifetime: l.lifetime()}
}

func (l *Launcher) lifetime() time.Duration { return cmp.Or(l.options.Lifetime, DefaultLifetime) }

// bring runs the user's program that copies an image to the node, once for each image.
func (l *Launcher) bring(ctx context.Context, image string) error {
	words := strings.Fields(l.options.Load)
	if _, done := l.loaded.Load(image); done || len(words) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], image)...)
	talk := &kept{bound: maxTalk}
	cmd.Stdout, cmd.Stderr = talk, talk
	cmd.WaitDelay = time.Second // a process that it left may keep the pipe open
	cmdlog.Command(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("load image %s on the node by %s (PRONY_KUBERNETES_LOAD): %w: %s", image,
			words[0], err, said(talk.text.String()))
	}
	l.loaded.Store(image, true)
	return nil
}

// Close stops what still runs and ends the guard. It may be called again.
func (l *Launcher) Close() error {
	var errs []error
	l.live.Range(func(p, _ any) bool {
		errs = append(errs, p.(launch.Process).Stop(0))
		return true
	})
	err := errors.Join(append(errs, l.outpost.close())...)
	// The guard tries to remove the rest after this process has ended.
	return errors.Join(err, l.guard.End(err == nil))
}

// sweep removes the jobs that have a label and that value accepts, with their pods and services,
// and describes what it removed.
func sweep(ctx context.Context, c *cluster, label string, value func(job) bool) (removed []string,
	err error) {
	jobs, err := look[list[job]](ctx, c, "get", "jobs", "--selector="+label)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, j := range jobs.Items {
		if value(j) && nameForm.MatchString(j.Metadata.Name) {
			names = append(names, j.Metadata.Name)
			removed = append(removed, fmt.Sprintf("job %s of lab %s", said(j.Metadata.Name),
				said(j.Metadata.Labels[labelLab])))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return removed, c.remove(ctx, names...)
}

// remove removes jobs, and waits until their pods have gone.
func (c *cluster) remove(ctx context.Context, jobs ...string) error {
	_, err := c.ask(ctx, nil, append([]string{"delete", "jobs", "--cascade=foreground",
		"--ignore-not-found", "--wait", "--timeout=25s"}, jobs...)...)
	return err
}

// watch holds the orders of a guard.
type watch struct {
	Cluster cluster `json:"cluster"`
	Lab     lab     `json:"lab"`
	Dir     string  `json:"dir"`
}

var post = guard.Post{Env: "PRONY_KUBERNETES_GUARD", Clear: clearUp}

// Guard runs the guard that removes a killed lab's jobs, or a reader, in a process that was started
// as one (see guard.Post.Stand and guard.Instead). Call it first in main of every program that uses
// this package, and in TestMain.
func Guard() {
	guard.Instead(readerEnv, read)
	post.Stand()
}

// clearUp removes what the lab has left, and notes what it could not remove.
func clearUp(orders []byte) error {
	var w watch
	if err := json.Unmarshal(orders, &w); err != nil {
		return fmt.Errorf("read watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	removed, err := sweep(ctx, &w.Cluster, labelLab+"="+w.Lab.ID, func(job) bool { return true })
	return guard.Note(w.Dir, "kubernetes-guard.log", w.Lab.ID, removed, err)
}
