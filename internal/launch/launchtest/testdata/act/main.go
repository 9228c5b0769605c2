// Command act is the program that tests launch in containers: it is static and needs no base image.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch/launchtest"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "act-tells" {
		tell(os.Args[2:])
		return
	}
	status, ok := launchtest.Act(os.Args[1:], os.Stdout, os.Stderr)
	if !ok {
		status = 9
	}
	os.Exit(status)
}

// tell prints the rights and limits that it finds, one a line.
func tell(paths []string) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		for _, key := range []string{"Uid:", "CapBnd:", "NoNewPrivs:"} {
			if strings.HasPrefix(line, key) {
				fmt.Println(strings.Join(strings.Fields(line), " "))
			}
		}
	}
	for _, path := range paths {
		fmt.Println("write", path, os.WriteFile(path+"/written", []byte("x"), 0o644) == nil)
	}
	var tmp unix.Statfs_t
	if err := unix.Statfs("/tmp", &tmp); err != nil {
		panic(err)
	}
	fmt.Println("tmp MiB", int64(tmp.Blocks)*tmp.Bsize>>20)
	self, err := os.ReadFile("/act")
	if err == nil {
		err = os.WriteFile("/tmp/act", self, 0o755)
	}
	if err == nil {
		err = exec.Command("/tmp/act", "act-prints").Run()
	}
	fmt.Println("run from /tmp", err == nil)
	fmt.Println("done")
}
