// Package address takes the URL of a service apart, in one way for all verbs and files:
//
//	URL ─► Parse ─► Host, Name, Port, Path as sent, Basic ─► Resolve ─► all addresses ─► Choose
//
// Nothing of a URL is dropped or changed without an error: characters beyond ASCII of a path become
// percent-encoded, those of a host name Punycode, a user becomes a header field, and all else is
// sent as written or refused. Paths can contain placeholders in braces.
//
// Non-goals: URLs of other systems than the services that receive load.
package address

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/lazyregexp"
)

// Address is the URL of a service. Errors and Strings never contain the user and password.
type Address struct {
	Scheme string // in lower case
	Host   string // the Host field: name and port as written, IDNA, without zone
	Name   string // host name or IP address to connect to, IDNA, with its zone
	Port   string // as written; empty: the scheme's
	Path   string // path and query as sent, at least /; placeholders stay
	Basic  string // the value of Authorization for the URL's user; empty: no user
}

// Error is a reason why a URL is refused, and what to write.
type Error struct{ Problem, Hint string }

func (e *Error) Error() string { return e.Problem + "; " + e.Hint }

func refuse(hint, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), hint}
}

// Parse takes a URL apart. Its scheme must be one of schemes.
func Parse(text string, schemes ...string) (a Address, err error) {
	scheme, tail, ok := strings.Cut(text, "://")
	a.Scheme = strings.ToLower(scheme)
	if !ok || !slices.Contains(schemes, a.Scheme) {
		return a, refuse("use one of the schemes "+strings.Join(schemes, ", "),
			"the URL must have a form such as %s://127.0.0.1:8080/path", schemes[0])
	}
	end := len(tail)
	if i := strings.IndexAny(tail, "/?#"); i >= 0 {
		end = i
	}
	if err := a.authority(tail[:end]); err != nil {
		if strings.Contains(tail[end:], "@") { // the text can be a part of a password
			return a, refuse("write /, ? and # of a user or password as %2F, %3F and %23",
				"the host cannot be read")
		}
		return a, err
	}
	if _, fragment, ok := strings.Cut(tail[end:], "#"); ok {
		return a, refuse("remove it, or write %23", "clients do not send the fragment #%s of a URL",
			fragment)
	}
	if a.Path = tail[end:]; !strings.HasPrefix(a.Path, "/") {
		a.Path = "/" + a.Path
	}
	a.Path, err = Path(a.Path)
	return a, err
}

// authority sets the fields from a URL's user, host and port.
func (a *Address) authority(text string) error {
	host := text[strings.LastIndexByte(text, '@')+1:]
	if open := strings.IndexByte(text, '['); open >= 0 { // the zone, which needs no escape here
		text = text[:open] + strings.ReplaceAll(strings.ReplaceAll(text[open:], "%25", "%"), "%",
			"%25")
	} else if strings.Count(host, ":") > 1 {
		return refuse("write an IPv6 address in brackets, such as http://[::1]:8080/",
			"host and port %q cannot be read", host)
	}
	u, err := url.Parse("x://" + text)
	if err != nil && strings.Contains(text, "@") {
		return refuse("write special characters of a user or password in percent-encoding, such "+
			"as %40 for @", "the host, or the user before it, cannot be read")
	}
	if err != nil || u.Hostname() == "" {
		return refuse("use a form such as 127.0.0.1:8080", "host and port %q cannot be read", host)
	}
	a.Name, a.Port = u.Hostname(), u.Port()
	if a.Port != "" {
		if n, err := strconv.ParseUint(a.Port, 10, 16); err != nil || n == 0 {
			return refuse("use a number from 1 to 65535", "port %q is not possible", a.Port)
		}
	}
	if strings.ContainsFunc(a.Name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		name, err := idna.Lookup.ToASCII(a.Name)
		if err != nil {
			return refuse("write it in Punycode (xn--…)", "host name %q: %v", a.Name, err)
		}
		a.Name = name
	}
	if a.Host = a.Name; strings.Contains(a.Name, ":") {
		name, _, _ := strings.Cut(a.Name, "%")
		a.Host = "[" + name + "]"
	}
	if a.Port != "" {
		a.Host += ":" + a.Port
	}
	if password, _ := u.User.Password(); u.User.Username()+password != "" {
		if strings.Contains(u.User.Username(), ":") {
			return refuse("use -H 'Authorization: …'", "the user of Basic cannot contain a colon")
		}
		a.Basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+
			password))
	}
	return nil
}

// placeholder matches the begin of a placeholder with arguments.
var placeholder = lazyregexp.New(`^\{[a-z][A-Za-z0-9_]* `)

// Path returns a path, with its query, as it is sent: characters beyond ASCII in percent-encoding
// (RFC 3987, section 3.1), all else unchanged. Placeholders in braces stay. It refuses characters
// that a request line cannot contain, and a % that begins no escape.
func Path(text string) (string, error) {
	var b strings.Builder
	spaces := 0 // allowed: one between the name of a placeholder and its arguments
	for i := range len(text) {
		x := text[i]
		switch {
		case x >= utf8.RuneSelf:
			fmt.Fprintf(&b, "%%%02X", x)
			continue
		case x == '{':
			spaces = strings.Count(placeholder.FindString(text[i:]), " ")
		case x == ' ' && spaces > 0:
			spaces--
		case x <= ' ' || x == 0x7f:
			return "", refuse(fmt.Sprintf("write %%%02X for this character in a path", x),
				"a path cannot contain %q", x)
		case x == '%' && !escape(text[i+1:]):
			return "", refuse("write %25 for a percent sign",
				"the %% in %q begins no escape such as "+
					"%%20", text[i:min(len(text), i+3)])
		}
		b.WriteByte(x)
	}
	return b.String(), nil
}

// escape reports whether a text continues a percent sign: with two hexadecimal digits, or with a
// placeholder that draws some.
func escape(text string) bool {
	const digits = "0123456789abcdefABCDEF"
	return strings.HasPrefix(text, "{hex ") || len(text) >= 2 &&
		strings.IndexByte(digits, text[0]) >= 0 && strings.IndexByte(digits, text[1]) >= 0
}

// Origin returns scheme, host and port, with the zone of an IP address.
func (a *Address) Origin() string {
	host := a.Host
	if name, zone, ok := strings.Cut(a.Name, "%"); ok {
		host = strings.Replace(host, name, name+"%25"+zone, 1)
	}
	return a.Scheme + "://" + host
}

// Resolve returns all addresses of the host, those of IPv4 first, with the URL's port or a default.
func (a *Address) Resolve(ctx context.Context, port string) ([]netip.AddrPort, error) {
	if a.Port != "" {
		port = a.Port
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q must be a number up to 65535", port)
	}
	var ips []netip.Addr
	if ip, err := netip.ParseAddr(a.Name); err == nil { // the resolver drops unknown zones
		ips = []netip.Addr{ip}
	} else if IsLocalhost(a.Name) && !strings.EqualFold(a.Name, "localhost") {
		ips = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	} else if ips, err = net.DefaultResolver.LookupNetIP(ctx, "ip", a.Name); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", a.Name, err)
	}
	var out []netip.AddrPort
	for _, want4 := range []bool{true, false} {
		for _, ip := range ips {
			ip = ip.Unmap()
			addr := netip.AddrPortFrom(ip, uint16(n))
			if ip.Is4() == want4 && !slices.Contains(out, addr) {
				out = append(out, addr)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("resolve %s: it has no address", a.Name)
	}
	return out, a.zoned(out)
}

// IsLocalhost reports whether a host name is that of this machine by RFC 6761, section 6.3, such as
// app.localhost. Like browsers and curl, Prony does not ask DNS for them.
func IsLocalhost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// zoned checks the zones of link-local addresses, without which no connection is possible.
func (a *Address) zoned(addrs []netip.AddrPort) error {
	ip := addrs[0].Addr()
	if ip.Is4() || !ip.IsLinkLocalUnicast() {
		return nil
	}
	var names []string
	all, _ := net.Interfaces() // without them, only the message has less
	for _, i := range all {
		names = append(names, i.Name)
		if ip.Zone() == i.Name || ip.Zone() == strconv.Itoa(i.Index) {
			return nil
		}
	}
	return refuse("write an interface of this machine, such as [fe80::1%25eth0]; the interfaces "+
		"are "+strings.Join(names, ", "), "%s is a link-local address, and %q is not an interface",
		ip.WithZone(""), ip.Zone())
}

// Choose returns the first address to which dial connects, and a note that names the addresses that
// stay unused; empty: there are none. If dial fails for all, it returns the first address. A single
// address is not dialed.
func (a *Address) Choose(all []netip.AddrPort, dial func(netip.AddrPort) error) (netip.AddrPort,
	string) {
	if len(all) == 1 {
		return all[0], ""
	}
	var names, failed []string
	for _, addr := range all {
		names = append(names, addr.Addr().String())
	}
	list := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	for _, addr := range all {
		err := dial(addr)
		if err == nil {
			return addr, fmt.Sprintf("%s has the addresses %s: only %v is used%s", a.Name, list,
				addr.Addr(), strings.Join(failed, ""))
		}
		if op := new(net.OpError); errors.As(err, &op) {
			err = op.Err // without the address
		}
		failed = append(failed, fmt.Sprintf("; %v: %v", addr.Addr(), err))
	}
	return all[0], fmt.Sprintf("%s has the addresses %s: none accepts a connection%s", a.Name, list,
		strings.Join(failed, ""))
}

// Shown returns a URL for messages: without a password, also if the URL is refused because of it.
func Shown(text string) string {
	scheme, tail, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(tail, "/?#"); i >= 0 && strings.Contains(tail[i:], "@") {
		return scheme + "://…" + tail[strings.LastIndexByte(tail, '@'):]
	}
	return cmdlog.Hush(text)
}

// WithoutZone returns an IP address and port as URLs and Host fields have them.
func WithoutZone(hostPort string) string {
	name, tail, _ := strings.Cut(hostPort, "%")
	if _, port, ok := strings.Cut(tail, "]"); ok {
		return name + "]" + port
	}
	return hostPort
}
