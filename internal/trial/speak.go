package trial

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"

	"prony.example/internal/base/address"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// Speech returns how a scenario's requests reach a service at an address; nil: HTTP/1.1 over TCP.
func Speech(sc suite.Scenario, mode string, addr netip.AddrPort) *nethttp.Config {
	protocol := nethttp.Schemes[sc.Protocol]
	if protocol == "" && sc.Unix == "" {
		return nil
	}
	c := &nethttp.Config{
		Protocol: protocol,
		Network:  "tcp",
		Address:  addr.String(),
		Host:     address.WithoutZone(addr.String()),
		Streams:  sc.Streams,
		Insecure: sc.TLS.Insecure,
		CA:       sc.TLS.PEM,
	}
	if sc.Unix != "" {
		c.Protocol, c.Network = nethttp.H1Unix, "unix"
		c.Address = strings.ReplaceAll(sc.Unix, "{port}", fmt.Sprint(addr.Port()))
	}
	_, c.Path = sc.Requests[0].Line(mode)
	for name, value := range sc.Requests[0].Headers {
		if strings.EqualFold(name, "host") {
			c.Host = string(value)
		}
	}
	return c
}

// transport returns a transport that sends single requests as the load sends them.
func transport(c *nethttp.Config, dial service.Dial) http.RoundTripper {
	if c == nil {
		return &http.Transport{DialContext: dial, DisableKeepAlives: true}
	}
	to := *c
	to.Dial = dial
	return nethttp.Transport{Config: to}
}

// Speaker returns how to check whether a service at an address is ready, by its name if it has one;
// nil: in HTTP/1.1 over TCP, by the address.
func Speaker(c *nethttp.Config, name string, addr netip.AddrPort) service.Speaker {
	if c == nil && name != "" {
		c = &nethttp.Config{
			Protocol: nethttp.H1,
			Network:  "tcp",
			Address:  addr.String(),
			Host:     name,
		}
	}
	if c == nil {
		return nil
	}
	return func(dial service.Dial) service.Asker {
		return transport(c, dial).(nethttp.Transport)
	}
}

// Ceiling identifies a generator limit: all that it depends on apart from the machine.
type Ceiling struct {
	Protocol    string // as records name it
	Streams     int
	Connections int
	Generators  int // 0: only this process
}

// ceiling returns the generator limit of a load in requests/s; 0: unknown.
func (l *Lab) ceiling(protocol string, streams, connections, generators int) float64 {
	return l.Ceilings[Ceiling{protocol, max(streams, 1), connections, generators}]
}

// spread multiplies the connections of a load by the streams of each.
func spread(s *load.Spec, c *nethttp.Config) {
	if c != nil {
		s.Host, s.Connections = c.Host, s.Connections*cmp.Or(c.Streams, 1)
	}
}

// Checker returns a checker that sends a contract's requests as the load sends its own.
func Checker(
	c *nethttp.Config,
	dial service.Dial,
	addr netip.AddrPort,
	mode string,
) service.Checker {
	out := service.Checker{Dial: dial, Base: addr.String(), Mode: mode}
	switch {
	case c == nil:
	case c.Protocol == nethttp.H1TLS || c.Protocol == nethttp.H1Unix:
		to := *c
		to.Dial = dial
		out.Dial, out.Base = to.Dialer(), c.Host
	default:
		out.Ask = transport(c, dial)
		out.Calls = c.Protocol == nethttp.GRPC || c.Protocol == nethttp.GRPCS
	}
	return out
}

// certify lets the target use its variant's protocol. If the protocol uses TLS, the target gets a
// new certificate for this trial.
func (f *life) certify(o *processes.Order) (err error) {
	protocol := f.trial.With.Protocol
	if protocol == "" {
		return nil
	}
	if nethttp.Secure(nethttp.Schemes[protocol]) {
		dir := filepath.Join(f.lab.Dir, f.trial.ID+".tls")
		if f.tls, err = service.NewCertificate(dir); err != nil {
			return err
		}
		f.trial.Scene.TLS = suite.TLS{PEM: f.tls.PEM}
		if f.launcher().Listen() != service.Loopback {
			// Its address is known only when it runs, and the certificate is made before.
			f.trial.Scene = f.trial.Scene.To(service.CertName)
		}
		o.Give = f.tls.Dir
	}
	maps.Copy(o.Env, f.tls.Env(protocol))
	f.rec.Provenance.VariantEnv = append(f.rec.Provenance.VariantEnv, "PROTOCOL="+protocol)
	return nil
}
