package tidy

import (
	"regexp"
	"strings"
	"unicode"
)

// HelpWords is the largest number of words in a sentence of a help text.
const HelpWords = 30

// banned are the constructions that STYLE.md forbids in text for readers, each with a replacement.
var banned = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bbefell\b`), "happened to"},
	{regexp.MustCompile(`(?i)\bamidst\b`), "during, among"},
	{regexp.MustCompile(`(?i)\bthrice\b`), "three times"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the user or the program"},
	{regexp.MustCompile(`(?i)\bin no number\b`), "not measured, excluded"},
	{regexp.MustCompile(`(?i)\bt(old|ells?) apart\b`), "significantly different"},
	{regexp.MustCompile(`(?i)\bmakes no sense\b`), "say what is wrong with the value"},
	{regexp.MustCompile(`(?i)\br(ides?|iding|ode) along\b`), "is attached"},
	{regexp.MustCompile(", as ['\"`]?[0-9]"), "such as, for example"},
	{regexp.MustCompile(`(?i), too[.,;:)]|, too$`), "also, before the verb"},
}

// vagueStart matches the first words of a sentence without a noun. Questions may begin with them.
var vagueStart = regexp.MustCompile(`^(What|That which|Who|Whoever|Whose|Whom|Those|Of)\b`)

// nounless are the first words of a flag's description that lacks its noun.
var nounless = strings.Fields(`of between those what then likewise meanwhile who whose that which
	in on at by for from to with without before after under over beside within into per as than
	not and or`)

// condition matches the case in which a flag has an effect, before the description itself.
var condition = regexp.MustCompile(`^with [^ ]+: `)

// sentenceEnd matches the end of a sentence with the first mark of the next one.
var sentenceEnd = regexp.MustCompile("[.!?][)\"']?\\s+[(\"'`A-Z0-9$-]")

// Sentences splits a text of one paragraph.
func Sentences(text string) (sentences []string) {
	text = strings.Join(strings.Fields(text), " ")
	for start := 0; ; {
		end := sentenceEnd.FindStringIndex(text[start:])
		if end == nil {
			return append(sentences, text[start:])
		}
		sentences = append(sentences, strings.TrimSpace(text[start:start+end[1]-1]))
		start += end[1] - 1
	}
}

// Wording returns the banned constructions in a paragraph, and the sentences whose subject is not a
// noun, each with the words and a replacement.
func Wording(paragraph string) (faults []string) {
	for _, s := range Sentences(paragraph) {
		for _, b := range banned {
			for _, match := range b.pattern.FindAllString(s, -1) {
				faults = append(faults, quoted(match, s)+": write "+b.instead)
			}
		}
		if m := vagueStart.FindString(s); m != "" && !strings.HasSuffix(s, "?") {
			faults = append(faults, quoted(m, s)+": begin the sentence with its subject, a noun")
		}
	}
	return faults
}

// HelpWording is Wording for a help text, whose sentences must also be short. Indented paragraphs
// are commands or tables.
func HelpWording(help string) (faults []string) {
	for paragraph := range strings.SplitSeq(help, "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			continue
		}
		faults = append(faults, Wording(paragraph)...)
		for _, s := range Sentences(paragraph) {
			if words(s) > HelpWords {
				faults = append(faults, quoted(s, s)+": write shorter sentences")
			}
		}
	}
	return faults
}

// FlagWording is HelpWording for the description of a flag, which begins with a noun or a verb.
func FlagWording(usage string) []string {
	faults := HelpWording(usage)
	usage = condition.ReplaceAllString(usage, "")
	first, _, _ := strings.Cut(strings.TrimLeft(usage, "'\"`("), " ")
	for _, word := range nounless {
		if strings.EqualFold(first, word) {
			faults = append(faults, quoted(first, usage)+": begin with a noun or a verb")
		}
	}
	return faults
}

// words counts the words of a sentence: fields with a letter or a digit.
func words(sentence string) (n int) {
	for field := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(field, func(r rune) bool {
			return unicode.IsLetter(r) || unicode.IsDigit(r)
		}) {
			n++
		}
	}
	return n
}

// quoted quotes a match and its sentence, or only the sentence if it is the match.
func quoted(match, sentence string) string {
	if match == sentence {
		return `"` + sentence + `"`
	}
	return `"` + match + `" in "` + sentence + `"`
}
