package importer

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"regexp"
	"slices"
	"strings"
)

// part is a text field of a form of several parts. Files are not in documents.
type part struct{ name, kind, value string }

// fileField is why a form with a file is left out.
const fileField = "a form with a file, whose content the document does not have"

// multipartForm returns the body of a form and its media type (RFC 7578). The boundary is always
// the same, unless a value contains it, so that each import writes the same file.
func multipartForm(parts []part) (body, kind string) {
	boundary := "prony-form"
	for n := 2; slices.ContainsFunc(parts, func(p part) bool {
		return strings.Contains(p.name+"\n"+p.kind+"\n"+p.value, boundary)
	}); n++ {
		boundary = fmt.Sprintf("prony-form-%d", n)
	}
	var out strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n", boundary,
			partNames.Replace(p.name))
		if p.kind != "" {
			fmt.Fprintf(&out, "Content-Type: %s\r\n", p.kind)
		}
		fmt.Fprintf(&out, "\r\n%s\r\n", p.value)
	}
	fmt.Fprintf(&out, "--%s--\r\n", boundary)
	return out.String(), "multipart/form-data; boundary=" + boundary
}

// partNames escapes names of fields (WHATWG HTML, 4.10.22.7).
var partNames = strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22")

// isWholeForm reports whether a body is a form of several parts with all their contents. Recorders
// leave out those of files.
func isWholeForm(kind, body string) bool {
	_, parameters, err := mime.ParseMediaType(kind)
	boundary := parameters["boundary"]
	if err != nil || boundary == "" || !strings.HasPrefix(body, "--"+boundary+"\r\n") {
		return false
	}
	for parts := multipart.NewReader(strings.NewReader(body), boundary); ; {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		content, err := io.ReadAll(p)
		if err != nil || p.FileName() != "" && len(content) == 0 {
			return false
		}
	}
}

// partName is the name of a field in its head.
var partName = regexp.MustCompile(
	`(?i)content-disposition:[ \t]*form-data;(?:[^\r\n]*[; \t])?name="([^"]*)"`)

// inParts hides the secrets in a form of several parts, or reports that a body is none.
func (d *Draft) inParts(body string) (string, bool) {
	delimiter, _, ok := strings.Cut(body, "\r\n")
	if !ok || len(delimiter) < len("--a") || !strings.HasPrefix(delimiter, "--") {
		return body, false
	}
	pieces := strings.Split("\r\n"+body, "\r\n"+delimiter)
	for i, piece := range pieces {
		head, value, ok := strings.Cut(piece, "\r\n\r\n")
		name := partName.FindStringSubmatch(head)
		switch {
		case !ok || name == nil || value == "":
			continue
		case isSecret(name[1]):
			value = d.secret(name[1], value, name[1]+" of a form")
		default:
			value = d.inBody(value)
		}
		pieces[i] = head + "\r\n\r\n" + value
	}
	return strings.TrimPrefix(strings.Join(pieces, "\r\n"+delimiter), "\r\n"), true
}
