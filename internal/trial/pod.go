package trial

import (
	"context"
	"slices"
)

// podded notes what a cluster has made of the target, once it is ready: a kubelet takes a moment to
// give it cores of its own. Which these are is the kubelet's to say.
func (f *life) podded(ctx context.Context) {
	pod, ok := f.proc.Pod(ctx)
	if !ok {
		return
	}
	f.rec.Pod = &pod
	if len(pod.Cores) > 0 {
		f.rec.Limits.ServiceCores = pod.Cores
	}
}

// unpodded adds what has become of it by the end: who came to its cores, and from when to when the
// cluster could not be asked.
func (f *life) unpodded() {
	if f.rec.Pod == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel() // as it is
	pod, _ := f.proc.Pod(now)
	f.rec.Pod.Away, f.rec.Pod.Reader = pod.Away, pod.Reader
	if len(pod.Cores) == 0 { // it has ended
		return
	}
	for _, s := range pod.Shared {
		if !slices.Contains(f.rec.Pod.Shared, s) {
			f.rec.Pod.Shared = append(f.rec.Pod.Shared, s)
		}
	}
}
