// Package kubernetes launches a target as a pod of a Kubernetes cluster, under limits that its
// kubelet sets and that are read back from the kernel of its node, and stops it. It drives kubectl,
// so that the user's own cluster, context and way to log in hold.
//
// Launch makes a job of one pod, and with Options.Service a service before it; the node is watched
// for the moment in which the container's program begins, its end is the kernel's word. During a
// window nothing is asked of the API; one stream brings the log.
//
//	on the pod's node              lab ─ site ─► here: cgroups, /proc
//	elsewhere      lab ─ site ─► far ─ kubectl attach ─► reader, a pod on that node ─► its here
//
// Nothing survives the lab. In order of what goes wrong: Stop removes the job with its pod and
// service, also that of a launch that was given up; a guard (this program again, see Guard) does
// when the lab is killed; New removes what even that has left behind on this machine; and the
// cluster itself ends and removes each job at its deadline, whoever lives.
//
// Non-goals: it neither builds nor pushes images, and starts no system of several processes.
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

// Names of the launchers, as records and flags have them.
const (
	Name        = "kubernetes"
	ServiceName = "kubernetes-service"
)

// Options say which cluster, and where in it.
type Options struct {
	// Service has pods reached through a service of the cluster, not by their own address.
	Service bool
	Context string // of kubectl; empty: the current one
	// Namespace is where pods go; empty: the context's.
	Namespace string
	// Nodes are labels that a pod's node must have, NAME=VALUE, with commas between; empty: the
	// node that this lab runs on.
	Nodes string
	// Load is a program with its arguments that brings an image to the node; empty: it is there.
	Load string
	// Lifetime is after what time the cluster ends a pod whose lab is gone; 0: DefaultLifetime.
	Lifetime time.Duration
	// Reader is inPod where a pod's limits and use are read by a reader on its node in any case;
	// empty: where this machine is no node that they may run on.
	Reader string
	// ReaderImage is an image of this program; empty: as `make release` names it.
	ReaderImage string
	// Dir is a folder in which the guard notes what it could not remove (kubernetes-guard.log).
	Dir string
}

// DefaultLifetime is longer than a trial takes, and short enough for a core that nobody uses.
const DefaultLifetime = 2 * time.Hour

// shortest is the least lifetime, below which no trial ends.
const shortest = time.Minute

// OptionsOf reads options from an environment, as os.Getenv.
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

// selector reads labels.
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
	nodes   map[string]string // what a pod's node must be
	node    node              // that pods run on, as the cluster knows it; may be empty
	known   []node            // all that this user may see
	far     bool              // limits and use are read by a reader, on another node than this
	outpost outpost
	server  string   // version of the API server
	address string   // of the API server, to see whether it is there; may be empty
	loaded  sync.Map // images that were brought to the node
	live    sync.Map // of *proc
}

var _ launch.Launcher = (*Launcher)(nil)

// New finds the cluster, checks that this user may do there what is needed, finds this machine
// among its nodes and removes what labs of this machine that are gone have left there, which reaped
// names in words.
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

// permitted asks which rights this user lacks, all at once, and whether the namespace takes a job.
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

// may asks which of some rights this user lacks.
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

// review is an answer about one right.
type review struct{ Status struct{ Allowed bool } }

// meetNode finds the node that is this machine, and has pods go there unless the user names labels.
// Where they go elsewhere a reader reads them there.
func (l *Launcher) meetNode(ctx context.Context) error {
	l.far = l.options.Reader == inPod
	answer, err := l.cluster.ask(ctx, nil, "get", "nodes", "--output=json")
	if err != nil && (l.far || l.options.Nodes != "") {
		return nil // who names the node need not be allowed to see all
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

// version is the API server's.
func (c *cluster) version(ctx context.Context) (string, error) {
	got, err := look[struct{ ServerVersion struct{ GitVersion string } }](ctx, c, "version")
	return said(got.ServerVersion.GitVersion), err
}

// listens is where the API server listens, as HOST:PORT; empty: kubectl does not say.
func (c *cluster) listens(ctx context.Context) string {
	output, _ := c.view(ctx, "{.clusters[0].cluster.server}") // as if it did not say
	return hostPort(output)
}

// Listen implements launch.Launcher: a pod has its address from the cluster and knows none to
// listen at but all.
func (l *Launcher) Listen() string { return "0.0.0.0" }

func (l *Launcher) order() order {
	return order{name: l.self.next(), lab: l.self, nodes: l.nodes, lifetime: l.lifetime()}
}

func (l *Launcher) lifetime() time.Duration { return cmp.Or(l.options.Lifetime, DefaultLifetime) }

// bring has the user's own program bring an image to the node, once.
func (l *Launcher) bring(ctx context.Context, image string) error {
	words := strings.Fields(l.options.Load)
	if _, done := l.loaded.Load(image); done || len(words) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], image)...)
	talk := &kept{bound: maxTalk}
	cmd.Stdout, cmd.Stderr = talk, talk
	cmdlog.Command(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("load image %s on the node by %s (PRONY_KUBERNETES_LOAD): %w: %s", image,
			words[0], err, said(talk.String()))
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
	// What could not be removed is the guard's: it tries again once the lab has gone.
	return errors.Join(err, l.guard.End(err == nil))
}

// sweep removes the jobs that have a label and are of those to remove, with their pods and
// services, and says which.
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

// watch is what a guard must know.
type watch struct {
	Cluster cluster `json:"cluster"`
	Lab     lab     `json:"lab"`
	Dir     string  `json:"dir"`
}

var post = guard.Post{Env: "PRONY_KUBERNETES_GUARD", Clear: clearUp}

// Guard must be called first in main of every program that uses this package, and in TestMain:
// guard.Post.Stand of what removes the jobs that a lab has left. It is also the whole life of a
// process that was started to be a reader.
func Guard() {
	guard.Instead(readerEnv, read)
	post.Stand()
}

// clearUp removes what the lab has left and notes what could not be removed.
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
