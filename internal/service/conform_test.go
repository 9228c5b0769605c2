package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
)

// checkWith checks an honest server. lie may replace an answer, and returns whether it did.
func checkWith(t *testing.T, contractName string,
	lie func(h *honest, w http.ResponseWriter, r *http.Request) bool) (Report, *pipes, error) {
	h := &honest{}
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lie == nil || !lie(h, w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	c := Checker{Dial: p.dial, Base: "service:1", Mode: "virtual", Logs: h.logs}
	report, err := Conform(t.Context(), c, contractName)
	return report, p, err
}

func TestHonestServicePasses(t *testing.T) {
	for _, name := range []string{"compute", "hello", "http"} {
		synctest.Test(t, func(t *testing.T) {
			began := clock.Mono()
			report, p, err := checkWith(t, name, nil)
			// Only one case sleeps, for 50 ms, and the log line appears at once.
			took, want := time.Duration(clock.Mono()-began), time.Duration(0)
			if name == "hello" {
				want = 50 * time.Millisecond
			}
			if took != want {
				t.Errorf("%s: took %v, want %v", name, took, want)
			}
			if err != nil || len(report.Failures()) > 0 {
				t.Errorf("%s: %v, %q", name, err, report.Failures())
			}
			for _, c := range report.Cases {
				if c.Skipped != "" {
					t.Errorf("%s: %s was skipped: %s", name, c.Name, c.Skipped)
				}
			}
			if p.dials != 2 { // one as the load generator, one as other clients
				t.Errorf("%s: %d connections, want 2", name, p.dials)
			}
			checkHeads(t, name, report.Heads)
			if name == "http" {
				checkWrites(t, p.writes)
			}
		})
	}
}

// checkWrites checks that each head is in a single write, with its body if that is small.
func checkWrites(t *testing.T, writes [][]byte) {
	bodies := 0
	for _, write := range writes {
		head, body, whole := strings.Cut(string(write), "\r\n\r\n")
		if strings.Contains(head, " HTTP/1.1\r\n") && !whole {
			t.Errorf("a head in several writes, the first: %q", write)
		}
		if body == "This is a small body." {
			bodies++
		}
	}
	if bodies != 4 { // of GET / and of GET /no-read, each sent twice
		t.Errorf("%d heads came with their small body, want 4", bodies)
	}
}

// checkLie checks a contract with a server that answers one request wrongly, and expects these
// differences.
func checkLie(t *testing.T, name, contractName, request string, lie http.HandlerFunc,
	want ...string) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			report, _, err := checkWith(t, contractName,
				func(_ *honest, w http.ResponseWriter, r *http.Request) bool {
					lies := r.Method+" "+r.URL.RequestURI() == request
					if lies {
						lie(w, r)
					}
					return lies
				})
			for i := range want {
				want[i] = request + ": " + want[i]
			}
			if got := report.Failures(); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v\n%s\nwant\n%s", err, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		})
	})
}

func says(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, status, media, body) }
}

// counting answers /concat with one body, and increments its first ten characters.
func counting() http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++
		answer(w, 200, "application/json", fmt.Sprintf(`{"concat":"%010d%s`, n, concat(1)[21:]))
	}
}

func exactly(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { raw(w, bytes) }
}

const hello, ok = "GET /hello", "HTTP/1.1 200 OK"
const typed, eleven = "Content-Type: text/plain", "Content-Length: 11"

func TestWrongBodies(t *testing.T) {
	// 16 bytes of "Hello from REST ", then "value-3141", then the wrong byte: 27.
	checkLie(t, "one byte", "hello", "GET /hello/virtual?key=31415",
		says(200, plain, "Hello from REST value-31416"),
		`the body differs at byte 27: got "value-31416", want "value-31415"`)
	checkLie(t, "first byte", "http", hello, says(200, plain, "hello world"),
		`the body differs at byte 1: got "hello", want "Hello"`)
	checkLie(t, "short", "http", hello, says(200, plain, "Hello worl"),
		"the body ends after 10 bytes, want 11 bytes")
	checkLie(t, "none", "http", hello, says(200, plain, ""), "the body ends after 0 bytes, want "+
		"11 bytes")
	checkLie(t, "long", "http", hello, says(200, plain, "Hello world\n"),
		`the body continues after byte 11, where it should end, with "\n"`)
	checkLie(t, "not empty", "http", "GET /load", says(404, plain, "not found"),
		`the body continues after byte 0, where it should end, with "not found"`)
}

func TestWrongHeads(t *testing.T) {
	checkLie(t, "status", "http", hello, says(500, plain, "no cache"),
		`status 500, want 200; the body begins with "no cache"`)
	checkLie(t, "status of an error", "http", "GET /file?size=-1", says(200, plain, ""),
		`status 200, want 400; the body begins with ""`)
	checkLie(t, "type", "http", hello, says(200, "text/html; charset=utf-8", "Hello world"),
		"Content-Type text/html; charset=utf-8, want text/plain")
	checkLie(t, "no type", "http", hello, exactly(head(ok, eleven)+"Hello world"),
		"no Content-Type header, want text/plain",
		"the service closed the connection after the response, want keep-alive")
	checkLie(t, "chunked", "http", hello, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", plain)
		_, _ = io.WriteString(w, "Hello ")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "world")
	}, "chunked, want Content-Length")
	checkLie(t, "no length", "http", hello, exactly(head(ok, typed)+"Hello world"),
		"no Content-Length", "Connection: close, want keep-alive")
	checkLie(t, "compressed", "http", hello, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		answer(w, 200, plain, "Hello world")
	}, "Content-Encoding gzip, want none")
}

func TestWrongConnections(t *testing.T) {
	checkLie(t, "HTTP/1.0", "http", hello,
		exactly(head("HTTP/1.0 200 OK", typed, eleven)+"Hello world"),
		"the response is in HTTP/1.0, want HTTP/1.1")
	checkLie(t, "closes", "http", hello, exactly(head(ok, typed, eleven)+"Hello world"),
		"the service closed the connection after the response, want keep-alive")
	checkLie(t, "closes and says so", "http", hello, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		answer(w, 200, plain, "Hello world")
	}, "Connection: close, want keep-alive")
	checkLie(t, "goes on", "http", hello,
		exactly(head(ok, typed, eleven)+"Hello world!"), "at least 1 bytes follow the end of the "+
			"response",
		"the service closed the connection after the response, want keep-alive")
	checkLie(t, "endless head", "http", "GET /no-read", exactly(ok+"\r\nX: "+
		strings.Repeat("x", 2*headLimitBytes)), "the response was incomplete: the response's "+
		"head is longer than 1048576 bytes",
		"the response was incomplete: the response's head is longer than "+
			"1048576 bytes")
	checkLie(t, "breaks off", "http", hello, exactly(head(ok, typed, eleven)+"Hello"),
		"the response was incomplete: unexpected EOF")
	checkLie(t, "no HTTP", "http", "GET /file", exactly("220 mail\r\n\r\n"),
		`the response was incomplete: malformed HTTP status code "mail"`)
	checkLie(t, "silence", "http", "GET /", exactly(""), "the response was incomplete: EOF",
		"the response was incomplete: EOF") // two cases, the second one with a body

	// The service may close the connection after a body was sent, and after an error.
	checkLie(t, "closes after a body", "http", "POST /load",
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			(&honest{}).ServeHTTP(w, r)
		}, "Connection: close, want keep-alive") // only for the load without a body
	checkLie(t, "closes after an error", "http", "GET /file?size=abc",
		exactly(head("HTTP/1.1 400 Bad Request", "Content-Length: 0")))
}

// A request on a closed idle connection is repeated, with any method, but only once. After that the
// service counts as not answering.
func TestRequestsAreAskedTwice(t *testing.T) {
	for losses, want := range map[int][]string{
		1: nil,
		2: {"POST /load: the response was incomplete: EOF"},
	} {
		synctest.Test(t, func(t *testing.T) {
			lost := 0
			report, _, err := checkWith(t, "http",
				func(_ *honest, w http.ResponseWriter, r *http.Request) bool {
					lies := r.Method+r.URL.Path == "POST/load" && lost < losses
					if lies {
						lost++
						raw(w, "")
					}
					return lies
				})
			if got := report.Failures(); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d lost: got %v, %q, want %q", losses, err, got, want)
			}
		})
	}
}

// lateWrites delays the return of writes until long after the answer, as on a machine without a
// free processor.
type lateWrites struct{ net.Conn }

func (l lateWrites) Write(data []byte) (int, error) {
	n, err := l.Conn.Write(data)
	time.Sleep(2 * unreadLimit)
	return n, err
}

// A connection that the check itself closes, or that was idle for longer than servers keep one, is
// no failure of the service.
func TestClosedByOthers(t *testing.T) {
	check := func(name string, idle time.Duration, dial func(*pipes) Dial) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := &honest{}
			p := newPipes()
			server := &http.Server{IdleTimeout: idle, Handler: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("User-Agent") != "" && idle > 0 { // sent as another client
						time.Sleep(2 * idle)
					}
					h.ServeHTTP(w, r)
				})}
			go server.Serve(p)   //nolint:errcheck // until it is closed
			defer server.Close() //nolint:errcheck // until it is closed
			report, err := Conform(t.Context(), Checker{Dial: dial(p), Base: "service:1",
				Mode: "virtual", Logs: h.logs}, "http")
			if err != nil || len(report.Failures()) > 0 || p.dials <= 2 {
				t.Errorf("%s: %v, %q over %d connections", name, err, report.Failures(), p.dials)
			}
		})
	}
	check("written late", 0, func(p *pipes) Dial {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := p.dial(ctx, network, address)
			return lateWrites{c}, err
		}
	})
	check("idle for 4 s", 2*time.Second, func(p *pipes) Dial { return p.dial })
}

func TestWrongFilesAndDraws(t *testing.T) {
	// The last byte of 1 MiB: 1048576 = 2351 * 446 + 30, which is the o of "consectetur".
	checkLie(t, "end of a file", "http", "GET /file", func(w http.ResponseWriter, _ *http.Request) {
		all, _ := io.ReadAll(loremReader(1 << 20))
		answer(w, 200, "application/octet-stream", string(all[:len(all)-1])+"!")
	}, `the body differs at byte 1048576: got "c!", want "co"`)
	// 1025 = 2 * 446 + 133, which is the a of "Ut enim ad".
	checkLie(t, "file too long", "http", "GET /file?size=1024",
		func(w http.ResponseWriter, _ *http.Request) {
			all, _ := io.ReadAll(loremReader(1025))
			answer(w, 200, "application/octet-stream", string(all))
		}, `the body continues after byte 1024, where it should end, with "a"`)

	checkLie(t, "same draw", "compute", "GET /concat",
		says(200, "application/json", `{"concat":"`+strings.Repeat("a", 10000)+`"}`),
		"two responses have the same body, want a new random body for each request")
	checkLie(t, "short draw", "compute", "GET /concat",
		says(200, "application/json", `{"concat":"`+strings.Repeat("a", 9999)+`"}`),
		"the body ends after 10012 bytes, want 10013 bytes")
	checkLie(t, "counted draw", "compute", "GET /concat", counting(),
		// 11 bytes before the characters, 9,990 and 2 that stay, and 9 of the 10 digits.
		"two bodies have 10012 of 10013 equal bytes, want a new random body for each request")
	checkLie(t, "long draw", "compute", "GET /concat",
		says(200, "application/json", `{"concat":"`+strings.Repeat("a", 10001)+`"}`),
		"the body continues after byte 10013, where it should end")
	checkLie(t, "strange draw", "compute", "GET /concat",
		says(200, "application/json", `{"concat":"`+strings.Repeat("_", 10000)+`"}`),
		`the body, which begins with "{\"concat\":\"_____________________", does not match `+
			`\{"concat":"[A-Za-z0-9]+"\}`)
	checkLie(t, "spaces", "compute", "GET /fibonacci",
		says(200, "application/json", `{"fibonacci": 832040}`),
		// {"fibonacci": is 13 bytes.
		`the body differs at byte 14: got "{\"fibonacci\": 832040}", want "{\"fibonacci\":832040}"`)
}

func TestWrongTimes(t *testing.T) {
	const slept = "GET /hello/virtual?key=9&sleep=0.05"
	greets := func(after time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(after)
			answer(w, 200, plain, "Hello from REST value-9")
		}
	}
	checkLie(t, "too early", "hello", slept, greets(49*time.Millisecond),
		"the response took 49ms, want at least 50ms")
	checkLie(t, "in time", "hello", slept, greets(50*time.Millisecond))
	checkLie(t, "just in time", "hello", slept, greets(time.Second))
	checkLie(t, "too late", "hello", slept, greets(1001*time.Millisecond),
		"the response took 1.001s, want at most 1s")
	// A delay of single answers comes from the machine.
	for times, difference := range map[int32][]string{2: nil, 3: {"the response took 1.001s, " +
		"want at most 1s"}} {
		var asked atomic.Int32
		checkLie(t, "late at first", "hello", slept, func(w http.ResponseWriter, r *http.Request) {
			after := 1001 * time.Millisecond
			if asked.Add(1) > times {
				after = time.Second
			}
			greets(after)(w, r)
		}, difference...)
	}
	checkLie(t, "waited for nothing", "http", hello, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(answerLimit - time.Nanosecond)
		answer(w, 200, plain, "Hello world")
	})
}

func TestLogs(t *testing.T) {
	const request = "GET /hello/virtual?key=4711&log=true"
	const pattern = `^(?:hello mode=virtual key=4711 thread=(?:VirtualThread\[|goroutine).*)$`
	check := func(name string, log func(h *honest, r *http.Request), want ...string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// A line from an earlier check does not count.
				report, _, err := checkWith(t, "hello",
					func(h *honest, w http.ResponseWriter, r *http.Request) bool {
						log(h, r)
						if get(r, "log", "") != "true" {
							return false
						}
						answer(w, 200, plain, "Hello from REST value-4711")
						return true
					})
				if got := report.Failures(); err != nil || !slices.Equal(got, want) {
					t.Errorf("got %v, %q\nwant %q", err, got, want)
				}
			})
		})
	}
	asked := func(lines ...string) func(*honest, *http.Request) {
		return func(h *honest, r *http.Request) {
			if get(r, "log", "") == "true" {
				for _, line := range lines {
					h.log(line)
				}
			}
		}
	}
	const good = "hello mode=virtual key=4711 thread=VirtualThread[#33]/runnable"
	check("one line", asked(good))
	check("no line", asked(), request+": log line missing after 2s: no line matches "+pattern)
	check("a thread of another kind", asked("hello mode=virtual key=4711 thread=worker-1"),
		request+": log line missing after 2s: no line matches "+pattern)
	check("no thread", asked("hello mode=virtual key=4711 thread="),
		request+": log line missing after 2s: no line matches "+pattern)
	check("with a date before", asked("2026-01-01 "+good),
		request+": log line missing after 2s: no line matches "+pattern)
	check("two lines", asked(good, good), request+": 2 log lines match "+pattern+", want 1 line")
	check("late, but there", func(h *honest, r *http.Request) {
		if get(r, "log", "") == "true" {
			time.AfterFunc(time.Second, func() { h.log(good) })
		}
	})
	check("an access log", func(h *honest, r *http.Request) {
		asked(good)(h, r)
		h.log(r.URL.Path)
	}, `the log has no unrequested lines: 61 log lines for 60 requests, but only 1 requests `+
		`should log a line; the last line: `+
		`"/hello/virtual"`)
}

func TestLinesOfAnEarlierCheckDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &honest{}
		p := serve(t, h)
		c := Checker{Dial: p.dial, Base: "service:1", Mode: "virtual", Logs: h.logs}
		for range 2 {
			report, err := Conform(t.Context(), c, "hello")
			if err != nil || len(report.Failures()) > 0 {
				t.Errorf("%v, %q", err, report.Failures())
			}
		}
		lines := h.logs()
		c.Logs = func() []string { return lines } // no new lines
		report, err := Conform(t.Context(), c, "hello")
		if err != nil || len(report.Failures()) == 0 {
			t.Errorf("%v, the lines of before were taken", err)
		}
		c.Logs = nil
		report, err = Conform(t.Context(), c, "hello")
		i := slices.IndexFunc(report.Cases, func(c Case) bool { return c.Skipped != "" })
		if err != nil || i < 0 || report.Cases[i].Name != "logs one line" ||
			report.Cases[i].Skipped != "the service's log is not available" {
			t.Errorf("%v, %+v", err, report.Cases)
		}
	})
}

func TestQuick(t *testing.T) {
	for name, want := range map[string][]string{
		"compute": nil,
		"hello":   {"sleeps a fraction of a second", "logs one line"},
		"http":    {"file of the default size", "largest file", "load of a large body"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := serve(t, &honest{})
			report, err := Quick(t.Context(), Checker{Dial: p.dial, Base: "service:1",
				Mode: "virtual", Logs: func() []string { return nil }}, name)
			if err != nil || len(report.Failures()) > 0 {
				t.Errorf("%s: %v, %q", name, err, report.Failures())
			}
			var skipped []string
			for _, c := range report.Cases {
				if c.Skipped != "" {
					skipped = append(skipped, c.Name)
				}
			}
			// Each rule draws one case: a key, a file and a body of a load.
			cases := len(goldens()[name].Cases) + len(draws[name])
			if !slices.Equal(skipped, want) || len(report.Cases) != cases {
				t.Errorf("%s: skipped %q of %d, want %q", name, skipped, len(report.Cases), want)
			}
		})
	}
}

func TestWhatEndsACheck(t *testing.T) {
	check := func(name string, c func(t *testing.T, p *pipes) (context.Context, Checker),
		contractName, want string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
				}))
				ctx, checker := c(t, p)
				report, err := Conform(ctx, checker, contractName)
				if err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				if len(report.Cases) > 1 {
					t.Errorf("went on for %d cases", len(report.Cases))
				}
			})
		})
	}
	plainly := func(t *testing.T, p *pipes) (context.Context, Checker) {
		return t.Context(), Checker{Dial: p.dial, Base: "service:1", Mode: "virtual"}
	}
	check("no contract", plainly, "helo",
		"check contract helo: the contract does not exist; "+oneOf(Contracts()))
	check("no answer", plainly, "hello",
		"check contract hello: GET /hello/virtual: no complete response within 30s")
	check("no connection", func(t *testing.T, p *pipes) (context.Context, Checker) {
		ctx, c := plainly(t, p)
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		}
		return ctx, c
	}, "http", "check contract http: GET /: connection refused")
	check("the end of the context", func(t *testing.T, p *pipes) (context.Context, Checker) {
		_, c := plainly(t, p)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		t.Cleanup(cancel)
		return ctx, c
	}, "http", "check contract http: GET /: enough")
}

func TestModes(t *testing.T) {
	for mode, want := range map[string]string{"platform": "virtual", "virtual": "platform",
		"reactive": "platform"} {
		c := goldenCase{Request: "GET /hello/{mode}", Logs: "mode={mode}"}.filled(mode)
		other := goldenCase{Request: "{other}"}.filled(mode).Request
		if c.Request != "GET /hello/"+mode || c.Logs != "mode="+mode || other != want {
			t.Errorf("%s: got %+v and %s", mode, c, other)
		}
	}
}

// Bodies differ around the edges of the buffer, 32768 bytes.
func TestCompareFindsEveryByte(t *testing.T) {
	want := make([]byte, 70000)
	for i := range want {
		want[i] = 'a' + byte(i%26)
	}
	check := func(at int) {
		got := slices.Clone(want)
		got[at] = '!'
		text, err := compare(strings.NewReader(string(got)), strings.NewReader(string(want)), 70000)
		if begin := fmt.Sprintf("the body differs at byte %d: got ", at+1); err != nil ||
			!strings.HasPrefix(text, begin) {
			t.Errorf("got %q, %v, want %s", text, err, begin)
		}
	}
	for _, at := range []int{0, 32767, 32768, 65503, 65504, 65505, 69999} {
		check(at)
	}
	for _, n := range []int{0, 1, 32767, 32768, 32769, 65504, 65535, 65536, 70000} {
		text, err := compare(strings.NewReader(string(want[:n])), strings.NewReader(string(want)),
			70000)
		begin := fmt.Sprintf("the body ends after %d bytes, want 70000 bytes", n)
		if n == 70000 {
			begin = ""
		}
		if text != begin || err != nil {
			t.Errorf("%d bytes: got %q, %v", n, text, err)
		}
		text, err = compare(strings.NewReader(string(want)), strings.NewReader(string(want[:n])),
			int64(n))
		begin = fmt.Sprintf("the body continues after byte %d, where it should end, with ", n)
		if n < 70000 && !strings.HasPrefix(text, begin) || n == 70000 && text != "" || err != nil {
			t.Errorf("%d bytes wanted: got %q, %v", n, text, err)
		}
	}
}

// The name of a thread that is not virtual must not look like a virtual thread's.
func TestThreads(t *testing.T) {
	check := func(mode, thread string, want bool) {
		t.Helper()
		c := goldenCase{Logs: "thread={thread}"}.filled(mode)
		line := regexp.MustCompile("^(?:" + c.Logs + ")$")
		if got := line.MatchString("thread=" + thread); got != want {
			t.Errorf("%s of mode %s: %v, want %v", thread, mode, got, want)
		}
	}
	check("virtual", "VirtualThread[#34,name]/runnable@ForkJoinPool-1-worker-1", true)
	check("virtual", "goroutine/127.0.0.1:4711", true)
	check("virtual", "http-nio-8080-exec-1", false)
	for _, mode := range []string{"platform", "reactive"} {
		check(mode, "VirtualThread[#34]/runnable", false)
		check(mode, "http-nio-8080-exec-1", true)
		check(mode, "vert.x-eventloop-thread-0", true)
		check(mode, "V8", true)
		check(mode, "", false)
	}
}

// A 204 has no length (RFC 9110, 8.6); any other answer has one.
func TestLengthOfHeads(t *testing.T) {
	check := func(status int, want string) {
		t.Helper()
		r := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
		got := strings.Join(headDifferences(goldenCase{Status: status}, r), "; ")
		if got != want {
			t.Errorf("status %d: %q, want %q", status, got, want)
		}
	}
	check(204, "")
	check(200, "no Content-Length")
}
