package host

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// MayLoad is an error for a host at an address that is not one of this machine's, and says how it
// is named: a load is an attack on whoever does not expect it.
func MayLoad(name string, at netip.Addr) error {
	own, err := Ours(at)
	if err == nil && !own {
		err = fmt.Errorf("%s (%v) is another machine, and a load may harm it; where you may load "+
			"it, say so: --remote %s", name, at, name)
	}
	return err
}

// Ours says whether an address is one of this machine's.
func Ours(at netip.Addr) (bool, error) {
	if at = at.Unmap(); at.IsLoopback() || at.IsUnspecified() { // connecting to 0.0.0.0 stays here
		return true, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("look up this machine's addresses: %w", err)
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == at.WithZone("")
	}), nil
}
