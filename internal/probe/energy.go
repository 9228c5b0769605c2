package probe

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// meter adds up what the hardware counts of the energy that packages of processors take, and the
// memory beside them (RAPL). Source: Documentation/power/powercap; AMD's are there, too.
type meter struct{ zones []zone }

type zone struct {
	counter file
	most    int64 // µJ, at which the counter begins anew
	last    int64
	sum     int64
}

// openMeter opens the counters of what no other one counts: packages, and memory where it is
// counted apart; cores and graphics are part of their package. None where the machine has none,
// hides them from its guests, or lets only root read them.
func openMeter(powercap string) (m meter) {
	dirs, err := filepath.Glob(filepath.Join(powercap, "intel-rapl:*"))
	if err != nil {
		return m
	}
	slices.Sort(dirs)
	buf := make([]byte, 64)
	for _, dir := range dirs {
		name := strings.TrimSpace(string(once(unix.AT_FDCWD, filepath.Join(dir, "name"), buf)))
		if !strings.HasPrefix(name, "package-") && name != "dram" {
			continue
		}
		z := zone{counter: optional(filepath.Join(dir, "energy_uj")),
			most: leading(once(unix.AT_FDCWD, filepath.Join(dir, "max_energy_range_uj"), buf))}
		if z.last = leading(z.counter.read(buf)); z.most <= 0 || z.last < 0 {
			z.counter.close()
			continue
		}
		m.zones = append(m.zones, z)
	}
	return m
}

// microjoules is what was taken since the meter was opened; -1 where nothing is counted. A counter
// may have begun anew once since the reading before: at full load one lasts for minutes.
func (m *meter) microjoules(buf []byte) int64 {
	if len(m.zones) == 0 {
		return unknown
	}
	var sum int64
	for i := range m.zones {
		z := &m.zones[i]
		now := leading(z.counter.read(buf))
		if now < 0 {
			return unknown
		}
		if now < z.last {
			z.sum += z.most
		}
		z.sum += now - z.last
		z.last = now
		sum += z.sum
	}
	return sum
}

func (m *meter) close() {
	for i := range m.zones {
		m.zones[i].counter.close()
	}
}
