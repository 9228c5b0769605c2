package format

import (
	"io"
	"slices"
	"strings"
)

// Format is a form of what is printed, and the endings of files in it, the usual one first.
type Format struct {
	Name    string
	Endings []string
}

// Formats are all that there are. Which of them something has, its Forms say.
var Formats = []Format{
	{"text", []string{"txt"}},
	{"markdown", []string{"md", "markdown"}},
	{"csv", []string{"csv"}},
	{"json", []string{"json"}},
	{"html", []string{"html", "htm"}},
	{"svg", []string{"svg"}},
	{"parquet", []string{"parquet"}},
}

// Ending is what the names of a format's files end with.
func Ending(format string) string { return Formats[index(format)].Endings[0] }

// FormatOf is the format that the end of a file's name asks for; empty where it asks for none.
func FormatOf(ending string) string {
	for _, f := range Formats {
		if slices.Contains(f.Endings, strings.ToLower(strings.TrimPrefix(ending, "."))) {
			return f.Name
		}
	}
	return ""
}

func index(format string) int {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == format })
	if i < 0 {
		panic("print: there is no format " + format + ": add it to Formats")
	}
	return i
}

// Form writes a T in a format.
type Form[T any] struct {
	Format string
	Write  func(io.Writer, T) error
}

// Forms are those of a T, the usual one first.
type Forms[T any] []Form[T]

// Names are their formats.
func (f Forms[T]) Names() (out []string) {
	for _, form := range f {
		out = append(out, Formats[index(form.Format)].Name)
	}
	return out
}

// Write writes v in one of the formats; another one is the programmer's error.
func (f Forms[T]) Write(w io.Writer, format string, v T) error {
	i := slices.IndexFunc(f, func(form Form[T]) bool { return form.Format == format })
	if i < 0 {
		panic("print: nothing writes this as " + format)
	}
	return f[i].Write(w, v)
}
