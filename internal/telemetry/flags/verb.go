// Package flags has the verbs that prony shares with prony-home: their flags, their help, and what
// they refuse. prony answers those by itself and hands over what makes sense; the home reads the
// same line with the same words and does it.
//
// Non-goals: nothing here receives, stores or asks anything.
package flags
