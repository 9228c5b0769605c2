// Package flags defines the commands that prony shares with prony-home: flags, help texts and
// validation. prony answers invalid arguments itself and passes valid ones to prony-home, which
// parses the same command line with this package.
//
// Non-goals: it does not receive, store or query anything.
package flags
