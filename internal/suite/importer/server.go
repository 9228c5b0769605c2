package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// server is where an operation is: the origin, "" where the document leaves it open, and the path,
// in which a variable without a value stays in braces. It is the wanted one of several, or the
// first. A reason says why there is none.
func (o *openAPI) server(want string, item, op tree) (origin, base, why string) {
	addresses := o.addresses(item, op)
	if len(addresses) == 0 {
		return "", "", ""
	}
	usable := false
	for _, a := range addresses {
		from, to, ok := splitServer(a)
		if ok && (!usable || want != "" && from == want) {
			origin, base = from, to
			if usable = true; from == want {
				break
			}
		}
	}
	if !usable {
		return "", "", "of a server that is not of http or https"
	}
	return origin, base, ""
}

// addresses are those of the servers of an operation, else of its path, else of the document.
func (o *openAPI) addresses(item, op tree) (out []string) {
	if o.second {
		return o.addresses2(op)
	}
	for _, node := range []tree{op, item, o.root} {
		servers, _ := node["servers"].([]any)
		for _, s := range servers {
			server := o.tree(s)
			variables := o.tree(server["variables"])
			fill := func(m string) string {
				v := o.tree(variables[m[1:len(m)-1]])
				if value, ok := v["default"]; ok {
					return plain(value)
				}
				if all := o.texts(v["enum"]); len(all) > 0 {
					return all[0]
				}
				return m
			}
			out = append(out, inTemplate.ReplaceAllStringFunc(plain(server["url"]), fill))
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// addresses2 are those that a document of version 2 has, one for each scheme.
func (o *openAPI) addresses2(op tree) (out []string) {
	host, base := plain(o.root["host"]), plain(o.root["basePath"])
	if host == "" {
		return []string{"/" + strings.TrimPrefix(base, "/")}
	}
	schemes := o.texts(op["schemes"])
	if len(schemes) == 0 {
		schemes = o.texts(o.root["schemes"])
	}
	if len(schemes) == 0 {
		schemes = []string{"http"}
	}
	for _, scheme := range schemes {
		out = append(out, scheme+"://"+host+"/"+strings.TrimPrefix(base, "/"))
	}
	return out
}

// bareHost begins an address that leaves its scheme out, which a path of a document does not.
var bareHost = regexp.MustCompile(`^(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})` +
	`(:[0-9]+)?(/|$)|^[A-Za-z0-9.-]+:[0-9]+(/|$)`)

// splitServer splits an address into origin and path before its variables have values. The origin
// of an address with a variable in scheme, host or port is open.
func splitServer(address string) (origin, base string, ok bool) {
	if address = strings.TrimSpace(address); nul(address) {
		return "", "", false
	}
	scheme, tail, absolute := strings.Cut(address, "://")
	if absolute = absolute && !strings.ContainsAny(scheme, "/?#"); !absolute {
		scheme, tail = "", address
		if after, is := strings.CutPrefix(address, "//"); is { // of the scheme of the document
			scheme, tail = "{scheme}", after
		} else if bareHost.MatchString(address) {
			scheme = "{scheme}"
		}
	}
	if scheme == "" {
		base = textBefore(tail, "?#")
		return "", strings.TrimRight(path.Clean("/"+base), "/"), true
	}
	host := textBefore(tail, "/?#")
	base = textBefore(tail[len(host):], "?#")
	base = strings.TrimRight(base, "/")
	if strings.Contains(scheme+host, "{") {
		known := slices.Contains([]string{"http", "https"}, strings.ToLower(scheme))
		return "", base, known || strings.Contains(scheme, "{")
	}
	origin, _, _, err := place(scheme + "://" + host)
	return origin, base, err == nil
}

// textBefore returns a text up to the first of some characters.
func textBefore(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
