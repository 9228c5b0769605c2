package probe

import (
	"os"
	"testing"
)

func TestNumber(t *testing.T) {
	check := func(text string, want int64, rest string, ok bool) {
		t.Helper()
		got, left, found := number([]byte(text))
		if got != want || string(left) != rest || found != ok {
			t.Errorf("number(%q) = %d, %q, %v, want %d, %q, %v",
				text, got, left, found, want, rest, ok)
		}
	}
	check("0", 0, "", true)
	check(" \t42 7", 42, " 7", true)
	check("-1 20", -1, " 20", true) // tpgid of /proc/PID/stat
	check("9223372036854775807\n", 1<<63-1, "\n", true)
	check("", 0, "", false)
	check("kB", 0, "kB", false)
	check("-", 0, "", false)
}

func TestKeyed(t *testing.T) {
	const status = "Name:\tx\nnonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t7\n"
	check := func(text, key string, want int64) {
		t.Helper()
		if got := keyed([]byte(text), key); got != want {
			t.Errorf("keyed(%q, %q) = %d, want %d", text, key, got, want)
		}
	}
	check(status, "voluntary_ctxt_switches:", 7) // not the 9, whose key has the same end
	check(status, "nonvoluntary_ctxt_switches:", 9)
	check(status, "Name:", unknown) // not a number
	check(status, "Threads:", unknown)
	check("", "Threads:", unknown)
	check("nr_throttled 7", "nr_throttled ", 7) // no newline at the end
	check("Pss_Dirty:  1 kB\nPss:   3 kB\n", "Pss:", 3)
	check("    lo:  5 6\n", "lo:", 5)
	check(" veth-lo:  5 6\n", "lo:", unknown)
}

func TestParseStat(t *testing.T) {
	// Fields 4 to 26 of proc(5): ppid pgrp session tty tpgid flags minflt cminflt, then majflt 70,
	// cmajflt 9, utime 10, stime 20, cutime 30, cstime 3, priority, nice, threads 12, itrealvalue,
	// start, vsize, rss 16, rsslim (too long for an int64), startcode.
	const numbers = " 1 2 3 4 -1 6 7 8" +
		" 70 9 10 20 30 3 4 11 12 5" +
		" 14 15 16 18446744073709551615 2"
	want := procStat{
		parent:      1,
		group:       2,
		majorFaults: 79, // 70 + 9
		userTicks:   40, // 10 + 30
		systemTicks: 23, // 20 + 3
		childTicks:  33, // 30 + 3
		threads:     12,
		rssBytes:    16 * pageBytes,
	}
	check := func(text string, ok bool) {
		t.Helper()
		got, found := parseStat([]byte(text))
		if found != ok || ok && got != want {
			t.Errorf("parseStat(%q) = %+v, %v, want %+v, %v", text, got, found, want, ok)
		}
	}
	check("7 (cat) R"+numbers, true)
	check("7 (a b) S 1 (c) R"+numbers, true) // a name may contain anything
	check("7 ()) R"+numbers, true)
	check("7 (cat) R 1 2 3", false)
	check("7 (cat)", false)
	check("", false)
}

func TestParseHost(t *testing.T) {
	check := func(text string, want HostTicks) {
		t.Helper()
		if got := ParseHost([]byte(text)); got != want {
			t.Errorf("ParseHost(%q) = %+v, want %+v", text, got, want)
		}
	}
	none := HostTicks{unknown, unknown, unknown}
	// busy = user 1 + nice 2 + system 4 + irq 32 + softirq 64 = 103; total = 103 + idle 8 + iowait
	// 16 + steal 128 = 255; guest 256 and 512 are included in user and nice.
	check("cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 9 9 9 9 9 9 9 9\n", HostTicks{103, 128, 255})
	check("cpu0 1 2 4 8 16 32 64 128\n", none)
	check("cpu  1 2 4\n", none)
	check("", none)
}

func TestParsePressure(t *testing.T) {
	check := func(text string, want int64) {
		t.Helper()
		if got := parsePressure([]byte(text)); got != want {
			t.Errorf("parsePressure(%q) = %d, want %d", text, got, want)
		}
	}
	check("some avg10=3.75 avg60=2.06 avg300=1.68 total=1090\nfull avg10=0.00 total=7\n", 1090)
	check("full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", unknown)
	check("some avg10=3.75\nfull total=7\n", unknown) // the other line's total must not be found
	check("", unknown)
}

func TestProcessClock(t *testing.T) {
	var cpu cpuClock
	before, mine, after := cpu.self(), cpu.process(os.Getpid()), cpu.self()
	if mine < before || mine > after { // two names of one clock
		t.Errorf("clock of this process by its number: %d, of itself %d to %d", mine, before, after)
	}
	if got := cpu.process(9000001); got != unknown { // above the kernel's largest PID, 1<<22
		t.Errorf("clock of no process: %d, want %d", got, unknown)
	}
}
