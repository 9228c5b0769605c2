package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Whose tells a process of this machine from any other that ever had its number.
type Whose struct {
	Process   string // PID-BIRTH
	Boot      string // of the kernel; the next one gives all numbers anew
	Namespace string // in which the number is one
}

// Own is that of this process.
func Own() (Whose, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Whose{}, fmt.Errorf("tell this lab from others: %w", err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Whose{}, fmt.Errorf("tell this lab from others: %w", err)
	}
	pid := os.Getpid()
	return Whose{Process: fmt.Sprintf("%d-%s", pid, Born(pid)),
		Boot: strings.TrimSpace(string(boot)), Namespace: namespace}, nil
}

// Gone says whether a process of this boot and namespace, named as PID-BIRTH, has ended. What has
// another form was written by nobody here, and is not gone.
func Gone(process string) bool {
	number, birth, ok := strings.Cut(process, "-")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || strings.Contains(birth, "-") {
		return false
	}
	stat := Stat(pid)
	return len(stat) == 0 || stat[0] == "Z" || Born(pid) != birth
}
