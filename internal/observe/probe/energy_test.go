package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// powercap is a simulated /sys/class/powercap.
type powercap struct {
	t   *testing.T
	dir string
}

func (p powercap) put(zone, file string, value any) {
	p.t.Helper()
	dir := filepath.Join(p.dir, "intel-rapl:"+zone)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(dir, file), []byte(fmt.Sprintln(value)), 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p powercap) zone(zone, name string, most, now int64) {
	p.t.Helper()
	p.put(zone, "name", name)
	p.put(zone, "max_energy_range_uj", most)
	p.put(zone, "energy_uj", now)
}

// TestEnergy checks that packages and their memory count, but not cores within a package, that a
// counter may restart, and that energy is unknown without counters.
func TestEnergy(t *testing.T) {
	p := powercap{t, t.TempDir()}
	p.zone("0", "package-0", 1000_000, 900_000)
	p.zone("0:0", "core", 1000_000, 5)
	p.zone("0:1", "dram", 500_000, 100)
	p.zone("1", "package-1", 1000_000, 0)
	p.zone("2", "psys", 1000_000, 7)
	s := opened(t, Config{proc: "testdata/proc", powercap: p.dir}, Subject{PIDs: fakePIDs})
	a := s.Mark()
	p.put("0", "energy_uj", 50_000)   // 150,000 with a restart
	p.put("0:0", "energy_uj", 99_999) // included in its package
	p.put("0:1", "energy_uj", 400)
	p.put("1", "energy_uj", 20_000)
	b := s.Mark()
	if got := b.EnergyUJ - a.EnergyUJ; got != 170_300 {
		t.Errorf("%d µJ, want 170,300", got)
	}
	if _, host := Between(a, b, Series{}, 1, 1); host.EnergyJ != 0.1703 {
		t.Errorf("%v J, want 0.1703", host.EnergyJ)
	}
	if err := os.Remove(filepath.Join(p.dir, "intel-rapl:1", "energy_uj")); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"none": t.TempDir(), "hidden": ""} {
		s := opened(t, Config{proc: "testdata/proc", powercap: dir}, Subject{PIDs: fakePIDs})
		if a, b := s.Mark(), s.Mark(); a.EnergyUJ != unknown || b.EnergyUJ != unknown {
			t.Errorf("%s: %d and %d µJ", name, a.EnergyUJ, b.EnergyUJ)
		} else if _, host := Between(a, b, Series{}, 1, 1); host.EnergyJ != 0 {
			t.Errorf("%s: %v J", name, host.EnergyJ)
		}
	}
	// Unreadable counters are ignored, for example without permission.
	m := openMeter(p.dir)
	defer m.close()
	if len(m.zones) != 2 {
		t.Errorf("%d counters, want package-0 and dram", len(m.zones))
	}
}
