package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"prony.example/internal/launch"
	"prony.example/internal/trial/processes"
)

// launcher is the one that the trial asks for.
func (f *life) launcher() launch.Launcher {
	if f.trial.Launcher == "" {
		return f.lab.Launcher
	}
	return f.lab.Containers[f.trial.Launcher]
}

// contain gives the containers of an order what they need of the host: where to listen, what rides
// along, and the folders that they write into for the lab. Those folders the processes of a lab
// that is root need as well: they are another user's.
func (f *life) contain(o *processes.Order) error {
	if f.trial.Launcher == "" && os.Geteuid() != 0 {
		return nil
	}
	if f.trial.Launcher != "" {
		o.Listen = f.launcher().Listen()
	}
	if f.tls.Dir != "" && f.trial.Launcher != "" {
		// A container's user is another one than any here, and may read what is mounted alone.
		if err := f.tls.Open(); err != nil {
			return err
		}
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.tls.Dir})
	}
	if f.trial.Ride.Path != "" {
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.trial.Ride.Path})
	}
	// Few agents have files of our own, and Docker refuses to mount what is not there.
	if _, err := os.Stat(f.trial.Ride.Files); err == nil {
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.trial.Ride.Files})
	}
	written := []string{o.Words["out"], filepath.Join(f.lab.Dir, "logs")}
	if len(f.trial.Watched.Profile) > 0 && f.onJVM() { // which writes what a profiler reads
		dir := filepath.Join(f.lab.Dir, profileDir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		written = append(written, dir)
		if tool := f.lab.Tools.AsyncProfiler; tool != "" {
			o.Mounts = append(o.Mounts, launch.Mount{Path: filepath.Dir(tool)})
		}
	}
	// They run as another user than the lab.
	const everybody = 0o777 | os.ModeSticky
	for _, path := range written {
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			continue // nothing is to be written there
		}
		if err := os.Chmod(path, everybody); err != nil {
			return fmt.Errorf("give the service write access to a folder: %w", err)
		}
		o.Mounts = append(o.Mounts, launch.Mount{Path: path, Write: true})
	}
	return nil
}

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
	f.rec.Pod.APIOutages, f.rec.Pod.Reader = pod.APIOutages, pod.Reader
	if len(pod.Cores) == 0 { // it has ended
		return
	}
	for _, s := range pod.CoresSharedWith {
		if !slices.Contains(f.rec.Pod.CoresSharedWith, s) {
			f.rec.Pod.CoresSharedWith = append(f.rec.Pod.CoresSharedWith, s)
		}
	}
}
