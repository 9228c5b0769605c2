package kernel

import (
	"strconv"
	"strings"
)

// rustEscapes are those of Rust's older way to write names
// (compiler/rustc_symbol_mangling/src/legacy.rs).
var rustEscapes = strings.NewReplacer("$SP$", "@", "$BP$", "*", "$RF$", "&", "$LT$", "<",
	"$GT$", ">", "$LP$", "(", "$RP$", ")", "$C$", ",", "$u20$", " ", "$u27$", "'", "$u5b$", "[",
	"$u5d$", "]", "$u7b$", "{", "$u7d$", "}", "$u7e$", "~", "$u3b$", ";", "$u2b$", "+",
	"$u22$", "\"", "..", "::")

// demangle makes names of Rust and the plain ones of C++ readable: "_ZN4core3ptr4drop17h0…E" is
// core::ptr::drop. What is more than names in names, such as C++'s templates or Rust's newer way to
// write names with types in them, stays as it is.
func demangle(name string) string {
	if rest, ok := strings.CutPrefix(name, "_R"); ok {
		if path, _, ok := rustPath(rest); ok {
			return path
		}
		return name
	}
	rest, ok := strings.CutPrefix(name, "_ZN")
	if !ok {
		return name
	}
	rest = strings.TrimPrefix(rest, "K") // a method that changes nothing
	var parts []string
	for !strings.HasPrefix(rest, "E") {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n == 0 || digits+n > len(rest) {
			return name
		}
		parts = append(parts, rest[digits:digits+n])
		rest = rest[digits+n:]
	}
	if len(parts) == 0 {
		return name
	}
	last := parts[len(parts)-1]
	if len(last) != 17 || last[0] != 'h' || strings.Trim(last[1:], "0123456789abcdef") != "" {
		return strings.Join(parts, "::") // C++
	}
	parts = parts[:len(parts)-1] // Rust's hash
	for i, p := range parts {
		if strings.HasPrefix(p, "_$") {
			p = p[1:]
		}
		parts[i] = rustEscapes.Replace(p)
	}
	return strings.Join(parts, "::")
}

// rustPath reads the part of Rust's newer names (RFC 2603) that needs no types: a crate and names
// in names, "NvNtCsj4…_4core3fmt5write" is core::fmt::write.
func rustPath(text string) (path, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(text, "C"); ok {
		return rustName(rest)
	}
	if rest, ok = strings.CutPrefix(text, "N"); !ok || rest == "" {
		return "", "", false
	}
	space := rest[0]
	path, rest, ok = rustPath(rest[1:])
	if !ok {
		return "", "", false
	}
	name, rest, ok := rustName(rest)
	if space == 'C' { // a closure has no name
		name = "{closure}" + name
	}
	return path + "::" + name, rest, ok
}

// rustName reads a name of so many bytes, behind a number that tells it from its like.
func rustName(text string) (name, rest string, ok bool) {
	if after, numbered := strings.CutPrefix(text, "s"); numbered {
		if _, text, ok = strings.Cut(after, "_"); !ok {
			return "", "", false
		}
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.Atoi(text[:digits])
	text = strings.TrimPrefix(text[digits:], "_")
	if err != nil || n > len(text) {
		return "", "", false
	}
	return text[:n], text[n:], true
}
