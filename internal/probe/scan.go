package probe

import "bytes"

// The scanners below read the kernel's text files where they lie: strconv and strings would
// allocate ten times a second for bytes that are numbers already. What is not there is unknown.

// unknown stands for a value that the kernel did not give. Zero would claim that nothing happened.
const unknown = -1

// number reads the decimal number after leading blanks, and gives what follows it. Numbers too long
// for an int64 wrap: the kernel writes such only in fields that are not read here.
func number(b []byte) (value int64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		value = value*10 + int64(b[i]-'0')
		i++
	}
	if negative {
		value = -value
	}
	return value, b[i:], i > start
}

// numbers fills into from the line at b's start and gives how many it found.
func numbers(b []byte, into []int64) int {
	for i := range into {
		var ok bool
		if into[i], b, ok = number(b); !ok {
			return i
		}
	}
	return len(into)
}

// after is what follows key on the line that begins with it, leading blanks aside. It compares from
// the line's start, because one key may end in another (nonvoluntary_ctxt_switches).
func after(b []byte, key string) []byte {
	for len(b) > 0 {
		line := b
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			line, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		for len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
		if len(line) >= len(key) && string(line[:len(key)]) == key {
			return line[len(key):]
		}
	}
	return nil
}

// keyed is the number after key on its line, or unknown. The key holds its own separator ("Rss:",
// "usage_usec "), else "nr" would find nr_periods.
func keyed(b []byte, key string) int64 {
	return leading(after(b, key))
}

// leading is the number at the beginning, or unknown.
func leading(b []byte) int64 {
	value, _, ok := number(b)
	if !ok {
		return unknown
	}
	return value
}

// scaled is value in a smaller unit; unknown stays so.
func scaled(value, factor int64) int64 {
	if value < 0 {
		return unknown
	}
	return value * factor
}
