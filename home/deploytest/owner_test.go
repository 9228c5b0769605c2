package deploytest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"prony.example/internal/dev/testsets"
)

// The load's container can write to a results folder of any owner by default. As a given user, it
// writes only to that user's folder.
func TestRainWritesWhoeverOwnsTheFolder(t *testing.T) {
	const image, user = "golang:1.26.5-bookworm", 1234
	if os.Getuid() != 0 {
		t.Skip("only root gives folders to others")
	}
	if err := exec.Command("docker", "image", "inspect", image).Run(); err != nil {
		t.Skipf("needs a Docker engine with %s: %v", image, err)
	}
	testsets.Once(t, "results of a container", testsets.Needs{
		Files: []string{"deploy/rain.yaml", "deploy/.env"}})
	rain := everything(t).Services["rain-fire"]
	for _, row := range []struct {
		owner int
		as    string // empty: as in .env
		can   bool
	}{
		{0, "", true}, {user, "", true},
		{0, fmt.Sprint(user), false}, {user, fmt.Sprint(user), true},
	} {
		dir := t.TempDir()
		if err := os.Chown(dir, row.owner, row.owner); err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "--rm", "--read-only", "--network", "none", "--user",
			cmp.Or(row.as, rain.User), "--volume", dir + ":/results"}
		for flag, all := range map[string][]string{"--cap-drop": rain.CapDrop,
			"--cap-add": rain.CapAdd, "--security-opt": rain.SecurityOpt} {
			for _, v := range all {
				args = append(args, flag, v)
			}
		}
		args = append(args, image, "sh", "-c", "mkdir /results/rain-fire && "+
			"touch /results/rain-fire/a")
		out, err := exec.Command("docker", args...).CombinedOutput()
		if _, gone := os.Stat(filepath.Join(dir, "rain-fire/a")); (err == nil) != row.can ||
			(gone == nil) != row.can {
			t.Errorf("as %q in a folder of %d: %v, %v, want it to write: %v: %s", row.as,
				row.owner, err, gone, row.can, out)
		}
	}
}
