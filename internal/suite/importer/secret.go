package importer

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	// Names that indicate secret values.
	secretName = regexp.MustCompile(`(?i)(token|secret|passw|passphrase|api[_-]?key|apikey|` +
		`session|csrf|xsrf|credential|signature|authoriz|bearer|jwt|` +
		`private[_-]?key|access[_-]?key)`)
	secretWord = regexp.MustCompile(`(?i)^(key|auth|sig|pwd|pass|pin|otp|sid|code|cookie|` +
		`x-auth|x-amz-security-token|proxy-authorization|jsessionid|phpsessid|cvv|ssn)$`)
	// Values that must be secrets: JSON Web Tokens, and keys with the prefixes of their issuers.
	secretValue = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*|` +
		`\b(sk|pk|rk)_(live|test)_[A-Za-z0-9]{8,}|\bgh[pousr]_[A-Za-z0-9]{20,}|` +
		`\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|` +
		`\bAIza[A-Za-z0-9_-]{30,}|\bglpat-[A-Za-z0-9_-]{16,}`)
	notName = regexp.MustCompile(`[^A-Z0-9]+`)
	holeRe  = regexp.MustCompile("\x00([A-Z_][A-Z0-9_]*|\\{[^\x00]*\\})\x00")
)

func isSecret(name string) bool {
	return secretName.MatchString(name) || secretWord.MatchString(name)
}

// shortest is the minimum length in bytes of a secret value that is also replaced everywhere else.
// Shorter values occur in texts by chance.
const shortest = 8

// secret returns the placeholder of a value. Equal values have the same name.
func (d *Draft) secret(name, value, about string) string {
	if value == "" || holeRe.FindString(value) == value {
		if m := holeRe.FindStringSubmatch(value); m != nil {
			d.tell(m[1], about)
		}
		return value
	}
	if known := d.names[value]; known != "" {
		return hole(known)
	}
	name = strings.Trim(notName.ReplaceAllString(strings.ToUpper(name), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "SECRET_" + name
	}
	free := name
	for d.named[free] != "" {
		d.last[name]++
		free = fmt.Sprintf("%s_%d", name, d.last[name]+1)
	}
	d.named[free], d.names[value] = value, free
	d.tell(free, about)
	return hole(free)
}

// tell records the meaning of a name. Placeholders are not secrets.
func (d *Draft) tell(name, about string) {
	if !d.reported[name] && !strings.HasPrefix(name, "{") {
		d.reported[name] = true
		d.Secrets = append(d.Secrets, Secret{name, about})
	}
}

// hide takes the secrets out of a request.
func (d *Draft) hide(r raw) raw {
	d.strip(&r)
	for i, f := range r.headers {
		r.headers[i].Value = d.field(f.Name, f.Value)
	}
	path, query, requested := strings.Cut(r.url, "?")
	if r.url = path; requested {
		r.url += "?" + d.pairs(query, "query")
	}
	r.body = d.inBody(r.body)
	scrub := func(s string) string {
		return secretValue.ReplaceAllStringFunc(s, func(v string) string {
			return d.secret("SECRET", v, "a value that looks like a key or a token")
		})
	}
	r.url, r.body = scrub(r.url), scrub(r.body)
	for i := range r.headers {
		r.headers[i].Value = scrub(r.headers[i].Value)
	}
	return r
}

// field returns the value of a header field without its secret. The scheme of an Authorization
// stays.
func (d *Draft) field(name, value string) string {
	about := "the header field " + name
	switch scheme, tail, two := strings.Cut(value, " "); {
	case strings.EqualFold(name, "authorization") && two && !strings.ContainsAny(tail, ",="):
		called := "TOKEN"
		if strings.EqualFold(scheme, "basic") {
			called, about = "BASIC_AUTH", "user:password in base64 (printf user:password | base64)"
		}
		return scheme + " " + d.secret(called, strings.TrimSpace(tail), about)
	case strings.EqualFold(name, "authorization") && two && strings.EqualFold(scheme, "basic"):
		return scheme + " " + d.secret("BASIC_AUTH", tail, "user:password in base64")
	case strings.EqualFold(name, "cookie"):
		return d.secret("COOKIE", value, "the header field Cookie, as "+cookies(value))
	case isSecret(name):
		return d.secret(name, value, about)
	}
	return value
}

// pairs hides the values in a query or form whose names indicate secrets.
func (d *Draft) pairs(text, subject string) string {
	parts := strings.Split(text, "&")
	for i, p := range parts {
		name, value, ok := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(name)
		if ok && value != "" && err == nil && isSecret(plain) {
			parts[i] = name + "=" + d.secret(plain, value, plain+" of a "+subject)
		}
	}
	return strings.Join(parts, "&")
}

// formed matches a body of names and values.
var formed = regexp.MustCompile(`^[^\s={}&<>"]+=[^\s{}<>"]*(&[^\s={}&<>"]+=[^\s{}<>"]*)*$`)

// secretPair is a name of JSON, GraphQL's variables or the like with a text or a number.
var secretPair = regexp.MustCompile(`"([A-Za-z0-9_.-]{1,64})"(\s*:\s*)` +
	`("(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)`)

func (d *Draft) inBody(body string) string {
	if formed.MatchString(body) {
		return d.pairs(body, "form")
	}
	if parts, ok := d.inParts(body); ok {
		return parts
	}
	return secretPair.ReplaceAllStringFunc(body, func(pair string) string {
		m := secretPair.FindStringSubmatch(pair)
		if !isSecret(m[1]) {
			return pair
		}
		if m[3][0] != '"' { // a number
			return `"` + m[1] + `"` + m[2] + d.secret(m[1], m[3], m[1]+" of a body")
		}
		inside := m[3][1 : len(m[3])-1]
		return `"` + m[1] + `"` + m[2] + `"` + d.secret(m[1], inside, m[1]+" of a body") + `"`
	})
}

// replacer replaces the values of known secrets everywhere else.
func (d *Draft) replacer() *strings.Replacer {
	var values []string
	for value := range d.names {
		if len(value) >= shortest {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { // longest first: values may overlap
		return cmp.Or(len(b)-len(a), cmp.Compare(a, b))
	})
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, hole(d.names[v]))
	}
	return strings.NewReplacer(pairs...)
}
