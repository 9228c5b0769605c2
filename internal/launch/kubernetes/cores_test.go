package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/launch"
)

// tree makes control groups with a path, cores and processes each.
func tree(t *testing.T, version int, groups ...[3]string) string {
	t.Helper()
	root := t.TempDir()
	for _, g := range groups {
		dir := filepath.Join(root, g[0])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cores := "cpuset.cpus"
		if version == 2 {
			cores += ".effective"
		}
		for name, value := range map[string]string{cores: g[1], "cgroup.procs": g[2]} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// Other users of a container's cores are found in the groups of all pods, in both versions and with
// both drivers' names.
func TestShared(t *testing.T) {
	self := fmt.Sprint(os.Getpid())
	const own = "kubepods/pod11111111-22/c0"
	check := func(what string, cpus float64, want string, groups ...[3]string) {
		t.Helper()
		for version := 1; version <= 2; version++ {
			root := tree(t, version, groups...)
			mine := []launch.Group{{Dir: filepath.Join(root, groups[0][0]), Controller: "cpuset",
				Version: version}}
			got := strings.Join(shared(mine, cpus), "; ")
			if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
				t.Errorf("%s, version %d: %q, want %q", what, version, got, want)
			}
		}
	}
	check("alone", 1, "", [3]string{own, "1", self},
		[3]string{"kubepods/burstable/pod3333/c1", "0", self},
		[3]string{"system.slice/kubelet", "0-1", self})
	check("beside another", 1, "pod 3333 may run on cores 0,1", [3]string{own, "1", self},
		[3]string{"kubepods/burstable/pod3333/c1", "0-1", self})
	check("beside one that has ended", 1, "", [3]string{own, "1", self},
		[3]string{"kubepods/burstable/pod3333/c1", "0-1", ""})
	const slices = "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods"
	check("of systemd's driver", 2, "pod 33_44 may run on cores 2,3",
		[3]string{slices + "-pod1_2.slice/cri-c0.scope", "2-3", self},
		[3]string{slices + "-besteffort.slice/kubelet-kubepods-besteffort-pod33_44.slice/" +
			"cri-c1.scope", "2-3", self})
	check("in the pool of all", 1,
		"the kubelet gave the pod no exclusive cores: it shares 2 cores with all pods, for 1 CPUs",
		[3]string{own, "0-1", self})
	check("of half a core", 0.5, "the kubelet gave the pod no exclusive cores", [3]string{own, "1",
		self})
	if got := shared(nil, 1); len(got) != 1 || !strings.HasPrefix(got[0],
		"the pod's cores cannot") {
		t.Errorf("without groups: %q", got)
	}
}

// A pod's group is found below a root with both drivers' names. An invalid UID is not searched.
func TestGroupOf(t *testing.T) {
	const uid = "08d98ca3-b19e-4e03"
	check := func(path, uid string, found bool) {
		t.Helper()
		root := tree(t, 1, [3]string{path, "0", ""}, [3]string{"kubepods/pod1", "0", ""})
		want := ""
		if found {
			want = filepath.Join(root, path)
		}
		if got := groupOf(root, uid); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	check("kubepods/pod"+uid, uid, true)
	check("docker/0f/kubepods/besteffort/pod"+uid, uid, true)
	check("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod08d98ca3_b19e_4e03.slice",
		uid, true)
	check("a/b/c/d/e/f/g/h/pod"+uid, uid, false) // deeper than any pod
	check("kubepods/pod..", "..", false)
	check("kubepods/pod", "", false)
}
