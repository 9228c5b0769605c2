package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// schemes are those of URLs to load.
var schemes = []string{"http", "https", "h2", "h2c", "h3", "grpc", "grpcs", "ws", "wss"}

// aim resolves the server's address and protocol.
func (f *loadFlags) aim(ctx context.Context, o *offer) (*address.Address, error) {
	u, err := address.Parse(o.url, schemes...)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", address.Shown(o.url), err)
	}
	o.url = cmdlog.Hush(o.url) // from here on it is only printed
	protocol, err := f.protocol(u.Scheme)
	if err != nil {
		return nil, err
	}
	secure := nethttp.Secure(protocol)
	if err := f.certificates(protocol, secure); err != nil {
		return nil, err
	}
	o.spec.Host = u.Host
	o.spec.Address = netip.MustParseAddrPort("127.0.0.1:1") // not used for connections
	c := nethttp.Config{
		Protocol: protocol, Network: "tcp", Host: u.Host, Path: u.Path, Streams: f.streams,
		Insecure: f.insecure, Cert: f.cert, Key: f.certKey,
	}
	if c.CA, err = trusted(f.ca, secure || protocol == ""); err != nil {
		return nil, err
	}
	if f.unix != "" {
		c.Network, c.Address = "unix", f.unix
	} else {
		usual := map[bool]string{true: "443", false: "80"}[secure]
		if err := f.locate(ctx, o, u, usual, c); err != nil {
			return nil, fmt.Errorf("load %s: %w", o.url, err)
		}
		c.Address = o.spec.Address.String()
	}
	if protocol != "" {
		o.by.Stack = &c
	}
	return &u, nil
}

// methodOf returns the method of requests to a URL. Messages of gRPC and WebSocket have a body.
func (f *loadFlags) methodOf(scheme string) (string, error) {
	switch message := strings.HasPrefix(scheme, "grpc") || strings.HasPrefix(scheme, "ws"); {
	case !message:
		return f.method, nil
	case f.given("type"), f.given("method") && f.method != http.MethodPost:
		return "", fmt.Errorf("--type and --method have no meaning for a message of gRPC or " +
			"WebSocket; leave them out")
	}
	return http.MethodPost, nil
}

// protocol returns the protocol for a URL's scheme; empty: HTTP/1.1 without TLS.
func (f *loadFlags) protocol(scheme string) (string, error) {
	switch {
	case f.http3 && (f.http2 || f.unix != "" || scheme != "https"):
		return "", fmt.Errorf("--http3 needs an https URL, and excludes --http2 and --unix")
	case f.http3:
		return nethttp.H3, nil
	case f.http2 && scheme == "http":
		return nethttp.H2C, nil
	case f.http2 && scheme == "https":
		return nethttp.H2, nil
	case f.http2:
		return "", fmt.Errorf("--http2 needs an http or https URL, got %s", scheme)
	case f.unix != "" && f.connect != "":
		return "", fmt.Errorf("--unix and --connect-to exclude each other")
	case f.unix != "" && scheme == "http":
		return nethttp.H1Unix, nil
	case f.unix != "":
		return "", fmt.Errorf("--unix needs an http URL")
	}
	return nethttp.Schemes[scheme], nil
}

// certificates checks the flags that depend on the protocol.
func (f *loadFlags) certificates(protocol string, secure bool) (err error) {
	switch {
	case protocol == "" && f.ca != "":
		return fmt.Errorf("--ca needs an https URL: http has no certificates")
	case protocol == "" && f.streams > 1:
		return fmt.Errorf("--streams is not possible with HTTP/1.1, which has one request at " +
			"a time on each connection; use --http2")
	case f.certKey != "" && f.cert == "":
		return fmt.Errorf("--cert-key is the key of --cert; give both")
	case f.cert == "":
		return nil
	case !secure:
		return fmt.Errorf("--cert is not possible, because the protocol has no certificates; " +
			"use https, grpcs or wss")
	}
	for _, path := range []*string{&f.cert, &f.certKey} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil { // generators have other folders
			return err
		}
	}
	return nil
}

// locate sets the address of a load: the first one of the host that accepts a connection.
func (f *loadFlags) locate(ctx context.Context, o *offer, u address.Address, port string,
	c nethttp.Config) (err error) {
	if f.connect != "" {
		if u, err = address.Parse("http://"+f.connect, "http"); err != nil || u.Path != "/" ||
			u.Port == "" || u.Basic != "" {
			return fmt.Errorf("--connect-to %q: want HOST:PORT, such as 127.0.0.1:8443 or "+
				"[::1]:8443", cmdlog.Hush(f.connect))
		}
	}
	all, err := u.Resolve(ctx, port)
	if err != nil {
		return err
	}
	o.spec.Address, o.note = u.Choose(all, func(addr netip.AddrPort) error {
		if err := f.ask(u.Name, addr.Addr()); err != nil {
			return fmt.Errorf("it is another machine")
		}
		bounded, cancel := context.WithTimeout(ctx, f.spec.Timeout)
		defer cancel()
		if c.Protocol == nethttp.H3 {
			c.Address = addr.String()
			return nethttp.Transport{Config: c}.Connect(bounded)
		}
		conn, err := new(net.Dialer).DialContext(bounded, "tcp", addr.String())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return f.ask(u.Name, o.spec.Address.Addr())
}

// authorize adds the URL's user to all requests, and makes their Host field the server's name.
func authorize(o *offer, u *address.Address) error {
	s := &o.spec.Scenario
	for _, list := range [][]load.Request{s.Setup, s.Requests} {
		for i := range list {
			switch {
			case u.Basic == "":
			case field(list[i], "Authorization") != "":
				return fmt.Errorf("load %s: the URL has a user, and %s %s has Authorization; keep "+
					"one of them", o.url, list[i].Method, list[i].Path)
			default:
				list[i].Headers = append(slices.Clip(list[i].Headers),
					load.Header{Name: "Authorization", Value: u.Basic})
			}
		}
	}
	if c := o.by.Stack; c != nil {
		name := field(s.Requests[0], "Host")
		if !strings.ContainsAny(name, "{$") && !slices.ContainsFunc(s.Requests,
			func(r load.Request) bool { return field(r, "Host") != name }) {
			c.Host = cmp.Or(name, c.Host)
		}
	}
	return nil
}

// field returns a header field of a request, or "".
func field(r load.Request, name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// trusted returns the certificates in a file, for protocols with TLS.
func trusted(name string, secure bool) (pem string, err error) {
	switch {
	case name == "":
		return "", nil
	case !secure:
		return "", fmt.Errorf("--ca is not possible, because the protocol has no certificates; " +
			"use https, grpcs or wss")
	}
	data, err := files.Kept(name, files.Settings)
	if err != nil {
		return "", fmt.Errorf("--ca: %w", err)
	}
	return string(data), nil
}

const remoteHelp = "host other than this machine that may be loaded; repeatable"

// ask refuses a host that is not this machine and was not named by --remote.
func (f *loadFlags) ask(name string, at netip.Addr) error {
	if slices.Contains(f.remote, name) {
		return nil
	}
	return host.MayLoad(name, at)
}
