package site

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/base/units"
	"prony.example/internal/report/runs"
)

// fed is the number of the newest runs in the feed.
const fed = 50

// feed is RSS 2.0 (https://www.rssboard.org/rss-specification).
type feed struct {
	XMLName xml.Name `xml:"rss"`
	Version string   `xml:"version,attr"`
	Channel channel  `xml:"channel"`
}

type channel struct {
	Title       string `xml:"title"`
	Link        string `xml:"link"`
	Description string `xml:"description"`
	Items       []item `xml:"item"`
}

type item struct {
	Title       string `xml:"title"`
	Link        string `xml:"link"`
	Description string `xml:"description"`
	Date        string `xml:"pubDate"`
	ID          guid   `xml:"guid"`
}

type guid struct {
	Permanent bool   `xml:"isPermaLink,attr"`
	Text      string `xml:",chardata"`
}

func writeFeed(name string, entries []runs.Entry, base string) error {
	if base != "" {
		base = strings.TrimSuffix(base, "/") + "/"
	}
	c := channel{Title: "Prony: runs", Link: base + "index.html",
		Description: "Runs of Prony, newest first"}
	for _, e := range entries[:min(fed, len(entries))] {
		title, about := fmt.Sprintf("%s: %s", e.Suite, verdicts(e)), e.Question
		if e.Answer != "" { // it is more useful than the number of VALID values
			title, about = e.Answer, title
		}
		c.Items = append(c.Items, item{
			Title: title, Description: about,
			Link: base + "index.html#/run/" + url.PathEscape(e.ID),
			Date: e.Time.UTC().Format(time.RFC1123Z), ID: guid{Text: e.ID},
		})
	}
	text, err := xml.MarshalIndent(feed{Version: "2.0", Channel: c}, "", " ")
	if err == nil {
		err = files.Put(name, []byte(xml.Header+string(text)+"\n"))
	}
	if err != nil {
		return fmt.Errorf("write feed: %w", err)
	}
	return nil
}

// verdicts counts a run's numbers by grade, as its report does, and the trials that are in no
// number.
func verdicts(e runs.Entry) string {
	var out []string
	for _, x := range []struct {
		n    int
		text string
	}{
		{e.Numbers.Valid, units.Plural(e.Numbers.Valid, "number") + " VALID"},
		{e.Numbers.Suspect, fmt.Sprint(e.Numbers.Suspect, " SUSPECT")},
		{e.Numbers.Unknown, fmt.Sprint(e.Numbers.Unknown, " not known")},
		{e.Trials.Invalid, units.Plural(e.Trials.Invalid, "trial") + " INVALID"},
		{e.Trials.Failed, fmt.Sprint(e.Trials.Failed, " failed")},
		{e.Trials.Missing, fmt.Sprint(e.Trials.Missing, " missing")},
	} {
		if x.n > 0 {
			out = append(out, x.text)
		}
	}
	if len(out) == 0 {
		return units.Plural(0, "number")
	}
	return strings.Join(out, ", ")
}
