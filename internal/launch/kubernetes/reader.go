package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/record"
)

// inPod is the value of Options.Reader for reading through a reader on the node in any case.
const inPod = "pod"

// readerLife is the lifetime of a reader in lifetimes of a pod. A reader older than one lifetime is
// replaced, so that it outlives every trial.
const readerLife = 2

// readerOf returns the manifest of a reader. It sees the processes and control groups of its node,
// may inspect them (SYS_PTRACE, for shared memory) and may raise priorities (SYS_NICE, for
// compilers during warm-up and for its own samples). It may write nothing.
func readerOf(image string, o order) object {
	return jobAround(object{
		"hostPID": true,
		"securityContext": object{"runAsUser": 0, "runAsGroup": 0,
			"seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{{
			"name": container, "image": image, "imagePullPolicy": pullOf(image), "stdin": true,
			"env": envOf([]string{readerEnv + "=1", "GOMAXPROCS=2"}),
			"securityContext": object{"allowPrivilegeEscalation": false, "privileged": false,
				"readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"},
					"add": []string{"SYS_NICE", "SYS_PTRACE"}}},
			// No processors: a node whose processors are all requested would reject the reader.
			"resources": object{"requests": object{"memory": "64Mi"},
				"limits": object{"memory": "256Mi"}},
			"volumeMounts": []object{{"name": "cgroup", "mountPath": "/sys/fs/cgroup",
				"readOnly": true, "recursiveReadOnly": "IfPossible"}},
		}},
		"volumes": []object{{"name": "cgroup",
			"hostPath": object{"path": "/sys/fs/cgroup", "type": "Directory"}}},
	}, o)
}

// outpost is the reader of a launcher: one at a time, on the node of its pods.
type outpost struct {
	mu    sync.Mutex
	node  string // on which all pods of this launcher run; empty: not chosen yet
	pod   *proc
	far   *far
	since int64   // clock.Mono
	past  []*proc // readers that were replaced
}

// reader returns a running reader and its node, on which all pods of this launcher run.
func (l *Launcher) reader(ctx context.Context) (*far, string, error) {
	o := &l.outpost
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.far != nil {
		select {
		case <-o.far.over:
		default:
			if clock.Mono()-o.since < int64(l.lifetime()) {
				return o.far, o.node, nil
			}
		}
		o.past, o.pod, o.far = append(o.past, o.pod), nil, nil
	}
	spec := launch.Spec{Name: "the reader", // the image is named as by `make release`
		Image: cmp.Or(l.options.ReaderImage, "prony/prony:"+runtime.GOARCH)}
	p := &proc{Common: launch.NewCommon(spec), l: l, order: l.order()}
	p.order.lifetime *= readerLife
	if p.order.node = o.node; o.node != "" {
		p.order.nodes = nil
	}
	o.pod, o.since = p, clock.Mono()
	f, err := p.read(ctx)
	if err != nil {
		o.pod = nil
		return nil, "", errors.Join(fmt.Errorf("start the reader of limits and use on the "+
			"pod's node: %w", err), p.Stop(0))
	}
	o.far, o.node = f, p.pod.Spec.NodeName
	for _, n := range l.known {
		if n.Metadata.Name == o.node {
			l.node = n
		}
	}
	return o.far, o.node, nil
}

// read starts a reader and connects to it.
func (p *proc) read(ctx context.Context) (*far, error) {
	if err := p.l.bring(ctx, p.Spec.Image); err != nil {
		return nil, err
	}
	o := readerOf(p.Spec.Image, p.order)
	if err := p.create(ctx, o, o); err != nil {
		return nil, err
	}
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	if how, _, ended := p.pod.ended(); ended {
		return nil, fmt.Errorf("the reader ended immediately, %s; check that %s is an image of "+
			"this version of Prony, or set PRONY_KUBERNETES_READER_IMAGE to another image",
			how, said(p.Spec.Image))
	}
	if !nameForm.MatchString(p.pod.Spec.NodeName) {
		return nil, fmt.Errorf("the reader's node has the name %q", said(p.pod.Spec.NodeName))
	}
	f := &far{line: newLine(p.attach, p.stands), pod: p.pod}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	if err := f.meet(ctx); err != nil {
		f.close()
		return nil, fmt.Errorf("meet it: %w", err)
	}
	return f, nil
}

// attach opens the stream to a reader.
func (p *proc) attach(ctx context.Context) (*stream, error) {
	return told(p.l.cluster.command(ctx, "attach", "--stdin", "--quiet", p.pod.Metadata.Name,
		"--container="+container))
}

// stands returns an error with the reason if a reader has stopped.
func (p *proc) stands(ctx context.Context) error {
	now, err := p.now(ctx)
	if err != nil {
		return fmt.Errorf("the reader's pod no longer exists: %w", err)
	}
	if how, _, ended := now.ended(); ended {
		return fmt.Errorf("the reader's pod has ended: %s", how)
	}
	return nil
}

// close ends a launcher's readers.
func (o *outpost) close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.far != nil {
		o.far.close()
	}
	if o.pod != nil {
		o.past = append(o.past, o.pod)
	}
	for _, p := range o.past {
		err = errors.Join(err, p.Stop(0))
	}
	o.pod, o.far, o.past = nil, nil, nil
	return err
}

// reachBound limits the time of a connection to a pod before it counts as unreachable.
const reachBound = 5 * time.Second

// reached returns an error if this machine cannot reach the pod's address. A refused connection
// counts as reached: the pod has answered, although nothing listens yet.
func (p *proc) reached(ctx context.Context) error {
	if p.Spec.Port == 0 {
		return nil
	}
	conn, err := (&net.Dialer{Timeout: reachBound}).DialContext(ctx, "tcp", p.addr.String())
	if err == nil {
		return conn.Close()
	}
	if late, is := errors.AsType[net.Error](err); is && late.Timeout() || unreachable(err) {
		return fmt.Errorf("the pod runs on node %s, but this machine cannot connect to %s: %w; "+
			"the load must reach addresses of pods, or of services with --launcher "+
			"kubernetes-service: run Prony on a node, or on a machine with a route to the "+
			"cluster's network",
			said(p.pod.Spec.NodeName), p.addr, err)
	}
	return nil
}

// record describes the reader for the record of a trial.
func (f *far) record(s *Sampling) *record.Reader {
	out := &record.Reader{Pod: said(f.pod.Metadata.Name), Image: f.pod.image(), Clock: f.clock}
	ctx, cancel := context.WithTimeout(f.ctx, askBound)
	defer cancel()
	if s != nil && f.lost() == nil {
		if now, err := f.exchange(ctx); err == nil {
			out.Clock.DriftNs = now.MonoNs - f.clock.OffsetNs
			out.Clock.DriftErrorNs = now.ErrorNs
		}
	}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		out.LateMaxNs, out.Lost = s.late, append([]string(nil), s.lost...)
	}
	return out
}
