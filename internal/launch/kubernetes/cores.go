package kubernetes

import (
	"slices"
	"strconv"
	"strings"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
)

// maxCores is above every number of a processor.
const maxCores = 1 << 16

// coreList reads the kernel's list of cores: "0-2,7".
func coreList(text string) (out []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil || from < 0 || to >= maxCores {
			return nil
		}
		for c := from; c <= to; c++ {
			out = append(out, c)
		}
	}
	return out
}

// coresOf are the cores of one control group; none: it does not say.
func coresOf(dir string) []int {
	for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
		if cores := coreList(kernel.Value(dir, name)); len(cores) > 0 {
			return cores
		}
	}
	return nil
}

// granted are the cores that the kubelet gave a container.
func granted(groups []launch.Group) []int {
	at := slices.IndexFunc(groups, func(g launch.Group) bool {
		return g.Version == 2 || g.Controller == "cpuset"
	})
	if at < 0 {
		return nil
	}
	return coresOf(groups[at].Dir)
}
