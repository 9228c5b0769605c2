// Package portguard protects the ports of this program from strangers: Guard decides which requests
// an HTTP port answers, and a Listener bounds connections so that unknown clients cannot shut out
// known ones.
//
// # Hosts
//
// A port on 127.0.0.1 is open to every page in a browser on this machine. A page may send there
// what a form can send; a page whose name resolves to 127.0.0.1 (DNS rebinding) may also read
// responses.
// A request must therefore name the port by an address or by a name that only this machine's owner
// can give. A browser's request must also come from a page of the port itself.
//
//	server := &http.Server{Handler: portguard.Guard(mux)}
//
// Two kinds of ports have no guard. Truth and null servers stand for services, which are called by
// arbitrary names, and have neither secrets nor state. A service under test belongs to somebody
// else.
//
// # Connections
//
// A connection is fresh until its first valid request or greeting, then busy or idle:
//
//	accept ─► fresh ─ Admit ─► busy ⇄ idle
//
// At the bound, a new connection takes the place of the oldest fresh one, otherwise of the oldest
// idle one. Only if all are busy does it wait. A client that authenticates as soon as it has
// connected is therefore served, however many others hold connections and stay silent.
//
//	guard := portguard.New(listener, portguard.Options{Most: 512})
//	guard.Watch(server)       // an http.Server; its handler calls Admit(r) or Deny(w, r)
//	server.Serve(guard)
//
// Protect keeps a connection busy while a complete request of an unknown client is in work. Other
// servers call AdmitConn, ProtectConn and DenyConn; a server that accepts connections itself has a
// Table.
//
// Non-goals: it authenticates nobody, and sets no time limits: the server bounds handshakes and
// heads of requests. Programs on this machine may send any request; actions that are reserved for
// the lab need a token of the port.
package portguard

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Hosts is the name of the variable with further host names of ports, separated by commas, such as
// names of Compose, or of this machine if a port is open to others.
const Hosts = "PRONY_HOSTS"

// Guard passes permitted requests to a handler and refuses others with the reason.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why, code := Refusal(r); code != 0 {
			http.Error(w, why, code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refusal returns the reason and the status with which a request is refused; code 0 means that it
// is permitted.
func Refusal(r *http.Request) (why string, code int) {
	switch {
	case !Named(r.Host):
		return "the host " + clip(r.Host) + " is not a known name of this server: use the " +
			"server's address, or add the host to " + Hosts, http.StatusMisdirectedRequest
	case foreign(r):
		return "the request comes from a page of another origin; only programs and this port's " +
				"own pages are allowed",
			http.StatusForbidden
	}
	return "", 0
}

// clip shortens a name for a message.
func clip(name string) string {
	const most = 100
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// Named reports whether a host, with or without a port, belongs to this machine: an IP address,
// which DNS cannot redirect; localhost, which browsers resolve without DNS (RFC 6761, 6.3); or a
// name in Hosts. A missing host, which HTTP/1.0 permits, cannot come from a browser and is
// accepted.
func Named(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		net.ParseIP(strings.Trim(host, "[]")) != nil {
		return true
	}
	for name := range strings.SplitSeq(os.Getenv(Hosts), ",") {
		if strings.EqualFold(strings.TrimSpace(name), host) {
			return true
		}
	}
	return false
}

// foreign reports whether a browser sends the request for a page of another origin. Browsers since
// 2023 say so (Fetch Metadata, Sec-Fetch-Site); older ones send the origin with everything but
// plain GETs. Following a link to this port is permitted, because the user does it and not the
// page.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
	default:
		return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || from.Host == "" || !strings.EqualFold(from.Host, r.Host)
}
