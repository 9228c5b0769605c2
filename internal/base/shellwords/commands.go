package shellwords

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Command is a simple command of a script.
type Command struct {
	Words   []string  // variables in front of the command included
	Problem string    // why the words are not surely those that a program receives; "": they are
	Inside  []Command // those whose output the words have, such as in $(command)
	Input   []string  // one text, which the command reads; none: it is unknown
}

const inside = "an & or ; that is not in quotes: quote the address"

// cut is what follows the words of a command if its last one is cut within an address.
var cut = regexp.MustCompile(`^(&[^&\s|;)>]|[;&|]+[\w.%-]+=)`)

// typographic are quotes, dashes and spaces that word processors and web pages put in place of
// those that a shell knows.
const typographic = "“”„‟‘’‚‛–—\u00a0"

var errTypographic = errors.New("a typographic quote, dash or space, such as “: type it as ASCII")

// Commands returns the simple commands of a Bash script, or of lines for cmd.exe, which it
// recognizes by their carets. A word has what the function returns for an expansion, such as
// $NAME, ${NAME} or $(command), in its place.
func Commands(script string, expansion func(source string) string) (out []Command, err error) {
	if (ofCmd.MatchString(script) || doubled.MatchString(script)) &&
		!backslash.MatchString(script) {
		return cmdCommands(script), nil
	}
	script = caret.ReplaceAllString(script, "\\\n")
	file, err := parse(script, syntax.LangBash)
	if err != nil {
		return nil, err
	}
	source := func(p syntax.WordPart) string {
		return expansion(script[p.Pos().Offset():p.End().Offset()])
	}
	texts := inputs(file, source)
	read := func(call *syntax.CallExpr) (c Command) {
		c.Input = texts[call]
		if cut.MatchString(script[call.End().Offset():]) {
			c.Problem = inside
		}
		for _, a := range call.Assigns {
			c.Words = append(c.Words, script[a.Pos().Offset():a.End().Offset()])
		}
		for _, w := range call.Args {
			word, err := text(w.Parts, false, source)
			switch {
			case err != nil:
				c.Problem = err.Error()
			case syntax.SplitBraces(w):
				c.Problem = "braces that the shell expands: put them in quotes"
			}
			c.Words = append(c.Words, word)
		}
		return c
	}
	visit(file, func(call *syntax.CallExpr) {
		var inner []Command
		add := func(call *syntax.CallExpr) { inner = append(inner, read(call)) }
		for _, a := range call.Assigns {
			visit(a, add)
		}
		for _, w := range call.Args {
			visit(w, add)
		}
		c := read(call) // which puts braces into the words, where they cannot be visited
		c.Inside = inner
		out = append(out, c)
	})
	return out, nil
}

// inputs returns what commands read: here-documents and here-strings, also if cat passes them on.
func inputs(file *syntax.File, source func(syntax.WordPart) string) map[*syntax.CallExpr][]string {
	out := map[*syntax.CallExpr][]string{}
	read := func(call syntax.Command, redirections []*syntax.Redirect) {
		to, is := call.(*syntax.CallExpr)
		for _, r := range redirections {
			if input, ok := document(r, source); is && ok {
				out[to] = []string{input}
			}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			read(n.Cmd, n.Redirs)
		case *syntax.BinaryCmd:
			from, is := n.X.Cmd.(*syntax.CallExpr)
			if is && n.Op == syntax.Pipe && len(from.Args) == 1 && from.Args[0].Lit() == "cat" {
				read(n.Y.Cmd, n.X.Redirs)
			}
		}
		return true
	})
	return out
}

// inDocument is what a backslash takes away or escapes in a here-document (Bash Reference Manual,
// section 3.6.6).
var inDocument = regexp.MustCompile("\\\\([$`\\\\])|\\\\\n")

// leadingTabs are those that <<- takes away.
var leadingTabs = regexp.MustCompile(`(?m)^\t+`)

// document returns the text that a redirection gives a command as its input, if it is known.
func document(r *syntax.Redirect, source func(syntax.WordPart) string) (out string, ok bool) {
	switch {
	case r.N != nil: // of another file
		return "", false
	case r.Op == syntax.WordHdoc:
		word, err := text(r.Word.Parts, false, source)
		return word + "\n", err == nil
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
		end, body := r.Word.Lit(), r.Hdoc // "" if it is in quotes
		if body == nil {
			body = &syntax.Word{}
		}
		for _, p := range body.Parts {
			switch lit, is := p.(*syntax.Lit); {
			case !is:
				out += source(p)
			case end == "" || strings.Contains(end, `\`): // all else is literal
				out += lit.Value
			default:
				out += inDocument.ReplaceAllString(lit.Value, "$1")
			}
		}
		if r.Op == syntax.DashHdoc {
			out = leadingTabs.ReplaceAllString(out, "")
		}
		return out, true
	}
	return "", false
}

// visit calls a function for each simple command below a node that is in no other one.
func visit(node syntax.Node, do func(*syntax.CallExpr)) {
	syntax.Walk(node, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if is {
			do(call)
		}
		return !is
	})
}

func blank(c byte) bool { return strings.IndexByte(" \t\r\n&;|)", c) >= 0 }

// escape is an escape of $'…' (Bash Reference Manual, section 3.1.2.4).
var escape = regexp.MustCompile(`(?s)\\(?:u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|x[0-9A-Fa-f]{1,2}|` +
	`[0-7]{1,3}|c.|.)`)

// escapes are the letters of $'…'.
var escapes = map[byte]string{'a': "\a", 'b': "\b", 'e': "\x1b", 'E': "\x1b", 'f': "\f",
	'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': `\`, '\'': "'", '"': `"`, '?': "?"}

// ansi returns what the text of $'…' stands for. Two surrogates, which browsers write for a
// character beyond 16 bits, are that character.
func ansi(text string) (string, error) {
	var b strings.Builder
	high := rune(0) // a surrogate that waits for its second
	done := 0
	for _, m := range escape.FindAllStringIndex(text, -1) {
		if high != 0 && m[0] > done {
			break
		}
		b.WriteString(text[done:m[0]])
		e := text[m[0]+1 : m[1]]
		done = m[1]
		digits, base := e[1:], 16
		if e[0] >= '0' && e[0] <= '7' {
			digits, base = e, 8
		}
		number, err := strconv.ParseUint(digits, base, 32)
		switch plain := escapes[e[0]]; {
		case plain != "":
			b.WriteString(plain)
			continue
		case e[0] == 'c' && len(e) > 1:
			b.WriteByte(e[1] & 0x1f)
			continue
		case len(digits) == 0 || err != nil: // such as \q, which stands for itself
			b.WriteString(`\` + e)
			continue
		}
		switch r := rune(number); {
		case number == 0, base == 8 && byte(number) == 0:
			return "", errors.New(`a NUL (\0) in $'…'`)
		case base == 8 || e[0] == 'x':
			b.WriteByte(byte(number))
		case high != 0:
			r = utf16.DecodeRune(high, r)
			if high = 0; r == utf8.RuneError {
				return "", errSurrogate
			}
			b.WriteRune(r)
		case utf16.IsSurrogate(r):
			high = r
		default:
			b.WriteRune(r)
		}
	}
	if high != 0 {
		return "", errSurrogate
	}
	b.WriteString(text[done:])
	return b.String(), nil
}

var errSurrogate = errors.New(`half a character (such as \ud83d) in $'…'`)
