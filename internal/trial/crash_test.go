package trial

import (
	"strings"
	"testing"
)

// The cause of a crash is the line that begins its report, not the end of a stack or of registers.
func TestCauseOfACrash(t *testing.T) {
	check := func(log, want string) {
		t.Helper()
		var lines []string
		if log != "" {
			lines = strings.Split(log, "\n")
		}
		if got := cause(lines); got != want {
			t.Errorf("%q: %s, want %s", log, got, want)
		}
	}
	check("", "")
	check("listening\nno licence", `; last line of its log: "no licence"`)
	check("listening\nSIGSEGV: segmentation violation\nPC=0x47b m=0 sigcode=0\n\ngoroutine 0:"+
		"\nruntime.futex(0x9fb2c8)\n\nrax    0xca\ngs     0x0",
		`; cause in its log: "SIGSEGV: segmentation violation"`)
	check("panic: a\n\tpanic: b\n[signal SIGSEGV]\n\ngoroutine 1:\nmain.main()\n\tm.go:3",
		`; cause in its log: "panic: a"`)
	check("fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:",
		`; cause in its log: "fatal error: all goroutines are asleep - deadlock!"`)
	check("thread 'main' (77) panicked at src/main.rs:2:5:\nno licence\nnote: run with RUST_",
		`; cause in its log: "thread 'main' (77) panicked at src/main.rs:2:5: no licence"`)
	check("Exception in thread \"main\" java.lang.IllegalStateException: x\n\tat Main.main(M:3)",
		`; cause in its log: "Exception in thread \"main\" java.lang.IllegalStateException: x"`)
	check("Error: listen EADDRINUSE\n    at Server.listen (node:net:1)\n\nNode.js v22.0.0",
		`; cause in its log: "Error: listen EADDRINUSE"`)
	check("Traceback (most recent call last):\n  File \"x.py\"\nValueError: no",
		`; cause in its log: "ValueError: no"`)
	check("panic: "+strings.Repeat("x", 300), `; cause in its log: "panic: `+
		strings.Repeat("x", 193)+`"`)
	check("panic: a\nrestarted\npanic: b\ngoroutine 1", `; cause in its log: "panic: b"`)
}
