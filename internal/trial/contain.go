package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"prony.example/internal/launch"
	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
)

// launcher returns the launcher of the trial, or the lab's if the trial names none.
func (f *life) launcher() launch.Launcher {
	if f.trial.Launcher == "" {
		return f.lab.Launcher
	}
	return f.lab.Containers[f.trial.Launcher]
}

// contain adds to an order what its containers need of the host: the address to listen on, the
// agent's files, and the folders that they write for the lab. Processes that the lab starts as root
// run as another user and need these folders, too.
func (f *life) contain(o *processes.Order) error {
	if f.trial.Launcher == "" && os.Geteuid() != 0 {
		return nil
	}
	if f.trial.Launcher != "" {
		o.Listen = f.launcher().Listen()
	}
	if f.tls.Dir != "" && f.trial.Launcher != "" {
		// A container's user differs from all users here, and can only read what is mounted.
		if err := f.tls.Open(); err != nil {
			return err
		}
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.tls.Dir})
	}
	if f.trial.Ride.Path != "" {
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.trial.Ride.Path})
	}
	// Few agents have files in the checkout, and Docker refuses to mount a missing path.
	if _, err := os.Stat(f.trial.Ride.Files); err == nil {
		o.Mounts = append(o.Mounts, launch.Mount{Path: f.trial.Ride.Files})
	}
	written := []string{o.Words["out"], filepath.Join(f.lab.Dir, "logs")}
	if o.Dumps != "" {
		written = append(written, o.Dumps)
	}
	if len(f.trial.Watched.Profile) > 0 && f.onJVM() { // the JVM writes files that a profiler reads
		dir := filepath.Join(f.lab.Dir, profileDir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		written = append(written, dir)
		if tool := f.lab.Tools.AsyncProfiler; tool != "" {
			o.Mounts = append(o.Mounts, launch.Mount{Path: filepath.Dir(tool)})
		}
	}
	// The service runs as another user than the lab.
	const everybody = 0o777 | os.ModeSticky
	for _, path := range written {
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			continue // the service writes nothing there
		}
		if err := os.Chmod(path, everybody); err != nil {
			return fmt.Errorf("give the service write access to a folder: %w", err)
		}
		mount := launch.Mount{Path: path, Write: true}
		if path == o.Dumps { // the entry points of the catalog's images name it
			mount.Destination = service.ImageDumps
		}
		o.Mounts = append(o.Mounts, mount)
	}
	return nil
}

// podded records the target's pod once it is ready: the kubelet chooses the pod's exclusive cores,
// and takes a moment to assign them.
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

// unpodded records the pod's events until the end of the trial: which pods came to its cores, and
// when the cluster's API did not respond.
func (f *life) unpodded() {
	if f.rec.Pod == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel() // do not wait: read the state that is known now
	pod, _ := f.proc.Pod(now)
	f.rec.Pod.APIOutages, f.rec.Pod.Reader = pod.APIOutages, pod.Reader
	if len(pod.Cores) == 0 { // the pod has ended
		return
	}
	for _, s := range pod.CoresSharedWith {
		if !slices.Contains(f.rec.Pod.CoresSharedWith, s) {
			f.rec.Pod.CoresSharedWith = append(f.rec.Pod.CoresSharedWith, s)
		}
	}
}
