package service

import (
	"context"
	"fmt"
	"time"
)

func (l logged) count(lines []string) int {
	n := 0
	for _, line := range lines {
		if l.line.MatchString(line) {
			n++
		}
	}
	return n
}

// judgeLogs waits until the lines that were asked for are there, or their time is over, and adds
// what is wrong to the cases, last the rule that nothing else is logged for a request.
func (k *check) judgeLogs(ctx context.Context) {
	lines := k.awaitLogs(ctx)
	for _, l := range k.logged {
		n := l.count(lines) - l.before
		c := &k.Cases[l.index]
		switch {
		case n < 1:
			c.Differences = append(c.Differences, fmt.Sprintf(
				"log line missing after %v: none matches %s", logLimit, l.line))
		case n > 1:
			c.Differences = append(c.Differences, fmt.Sprintf("%d log lines match %s, want 1", n,
				l.line))
		}
	}
	if k.Ask != nil {
		// Each question then has a connection of its own, which the check ends without a farewell:
		// what a server says of that, no load makes it say.
		return
	}
	silent := Case{Name: "nothing is logged unasked"}
	// A runtime may say something of its own now and then; what grows with the requests is theirs.
	unasked := len(lines) - k.linesAt - len(k.logged)
	if unasked*2 >= k.asked {
		silent.Differences = []string{fmt.Sprintf("%d lines for %d requests, of which %d asked "+
			"for one; the last: %q", unasked+len(k.logged), k.asked, len(k.logged),
			lines[len(lines)-1])}
	}
	k.Cases = append(k.Cases, silent)
}

func (k *check) awaitLogs(ctx context.Context) []string {
	for waited := time.Duration(0); ; waited += logPoll {
		lines := k.Logs()
		complete := true
		for _, l := range k.logged {
			complete = complete && l.count(lines) > l.before
		}
		if complete || waited >= logLimit {
			return lines
		}
		select {
		case <-ctx.Done():
			return lines
		case <-time.After(logPoll):
		}
	}
}
