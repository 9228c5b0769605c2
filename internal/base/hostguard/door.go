// Package hostguard says whom an HTTP port that this program opens answers. A port on 127.0.0.1 is
// open to every page in a browser on this machine: a page may send there what a form can send, and
// one whose name is made to mean 127.0.0.1 (DNS rebinding) may read the answers, too. So a request
// must call the port by an address or by a name that is nobody else's to give, and one that a
// browser sends must come from a page of the port's own.
//
//	server := &http.Server{Handler: hostguard.Guard(mux)}
//
// Two kinds of ports have no such door. Truth and null servers stand for services, which are
// called by names of all sorts, and have nothing to tell or to change. A service under test is
// somebody else's program.
//
// Non-goals: it does not ask who is there. Programs of this machine may send what they like; what
// only the lab may say takes a token of the port's own.
package hostguard

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Hosts is the variable with further names, separated by commas, by which ports are called: those
// of Compose, say, or of this machine where a port is open to others.
const Hosts = "PRONY_HOSTS"

// Guard lets through what a handler may answer. Everything else is refused with the reason.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why, code := Refusal(r); code != 0 {
			http.Error(w, why, code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refusal says why a request is not answered, and with which status; 0: it is.
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

// clip keeps of a name what a message can bear.
func clip(name string) string {
	const most = 100
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// Named says whether a host, with or without a port, is one of this machine's: an address, which
// nobody can make mean another; localhost, which no browser asks DNS for (RFC 6761, 6.3); or one of
// Hosts. No host at all, which HTTP/1.0 permits, is no browser's.
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

// foreign says whether a browser sends it for a page of another origin. Each browser since 2023
// says so itself (Fetch Metadata, Sec-Fetch-Site); an older one names the origin with all that is
// not a plain GET. To follow a link here is no page's doing, but the reader's.
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
