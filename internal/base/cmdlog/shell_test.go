package cmdlog

import (
	"os/exec"
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `''`,
		"a/b-c.d=e:f@g%h,i": "a/b-c.d=e:f@g%h,i",
		"a b":               `'a b'`,
		"it's":              `'it'\''s'`,
		"$HOME;`x`":         "'$HOME;`x`'",
		"a\nb":              "'a\nb'",
		"*":                 "'*'",
		"~":                 "'~'",
		"http://x/?a={key}": "'http://x/?a={key}'",
		"p99<5ms":           "'p99<5ms'",
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestAShellReadsTheWordsBack checks that a real shell reads quoted words unchanged.
func TestAShellReadsTheWordsBack(t *testing.T) {
	words := []string{"a b", "", "it's", `"$X"`, "tab\there", "*", `back\slash`, "-n", "é", "!x"}
	out, err := exec.Command("sh", "-c", `printf '<%s>' `+Join(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "<" + strings.Join(words, "><") + ">"; string(out) != want {
		t.Errorf("the shell read %s, want %s", out, want)
	}
}

// TestHush checks that passwords of URLs are removed and nothing else changes.
func TestHush(t *testing.T) {
	for text, want := range map[string]string{
		"http://ann:s3cret@h:1/a:b@c":     "http://ann:xxxxx@h:1/a:b@c",
		"--url=https://:p:w@x@h/?q=a:b@c": "--url=https://:xxxxx@h/?q=a:b@c",
		"a http://u:p@h b grpc://v:q@i":   "a http://u:xxxxx@h b grpc://v:xxxxx@i",
		"http://ann@h/a:b@c":              "http://ann@h/a:b@c",
		"http://h:8080/x@y:z@":            "http://h:8080/x@y:z@",
		"p99<50ms:a@b":                    "p99<50ms:a@b",
	} {
		if got := Hush(text); got != want {
			t.Errorf("Hush(%q) = %q, want %q", text, got, want)
		}
	}
	got := shown(t, func() { Run("curl", "http://ann:s3cret@h/") })
	if want := "curl http://ann:xxxxx@h/"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}

// TestHushed checks that credentials in header fields are removed, unless they are references to
// variables.
func TestHushed(t *testing.T) {
	for word, want := range map[string]string{
		"Authorization: Bearer s3cret":         "Authorization: …",
		"-HAuthorization:s3cret":               "-HAuthorization:…",
		"-kH=cookie: sid=s3cret":               "-kH=cookie: …",
		"--header=X-Api-Key: s3cret":           "--header=X-Api-Key: …",
		"proxy-authorization: Basic s3cret==":  "proxy-authorization: …",
		"Authorization: Bearer ${TOKEN}":       "Authorization: Bearer ${TOKEN}",
		"Cookie: sid=${SID}":                   "Cookie: sid=${SID}",
		"Authorization: Bearer ${TOKEN}s3cret": "Authorization: …",
		"Accept: text/html":                    "Accept: text/html",
		"http://a:s3cret@b/":                   "http://a:xxxxx@b/",
	} {
		if got := Hushed([]string{"load", word}); got[1] != want || got[0] != "load" {
			t.Errorf("%q is kept as %q, want %q", word, got[1], want)
		}
	}
}

func shown(t *testing.T, act func()) string {
	t.Helper()
	var lines []string
	Show(func(line string) { lines = append(lines, line) })
	defer Show(nil)
	act()
	return strings.Join(lines, "\n")
}

func TestWhatIsShown(t *testing.T) {
	t.Setenv("PRONY_TEST_SAME", "1")
	cmd := exec.Command("/bin/echo", "a b", "$x")
	cmd.Dir = "/a dir"
	cmd.Env = []string{"PRONY_TEST_SAME=1", "MODE=x y", "API_TOKEN=hush", "db_password=hush"}
	for _, row := range []struct {
		act  func()
		want string
	}{
		{func() { Command(cmd) }, `(cd '/a dir' && MODE='x y' API_TOKEN="$API_TOKEN" ` +
			`db_password="$db_password" /bin/echo 'a b' '$x')`},
		{func() { Write("/sys/fs/cgroup/x y", "100000 100000") },
			"echo '100000 100000' > '/sys/fs/cgroup/x y'"},
		{func() { Run("docker", "rm", "-f", "a") }, "docker rm -f a"},
	} {
		if got := shown(t, row.act); got != row.want {
			t.Errorf("shown\n%s, want\n%s", got, row.want)
		}
	}
	Run("nobody", "looks") // has no effect
}

// TestRepeatable checks which words a line that repeats a command leaves out.
func TestRepeatable(t *testing.T) {
	for words, want := range map[string]string{
		"prony versus a b --out d --get /":      "prony versus a b --get /",
		"prony versus a --out=d --get /":        "prony versus a --get /",
		"prony load u --save=d -c 2":            "prony load u -c 2",
		"prony load u --save -c 2 --output h":   "prony load u --save -c 2 --output h",
		"prony versus --get / -- ./a --out=b":   "prony versus --get / -- ./a --out=b",
		"prony versus --out d --get / -- --out": "prony versus --get / -- --out",
		"prony versus a --out":                  "prony versus a",
		"prony versus --wait a --wait=9m -c 2":  "prony versus a -c 2",
		"prony versus --get / -- ./a --wait":    "prony versus --get / -- ./a --wait",
		"prony load u --save-trace f -r 9":      "prony load u -r 9",
		"prony load u --save-trace=f -r 9":      "prony load u -r 9",
	} {
		if got := strings.Join(Repeatable(strings.Fields(words)), " "); got != want {
			t.Errorf("%s is repeated as %s, want %s", words, got, want)
		}
	}
}

// TestLacking checks which stored lines were changed by Hushed.
func TestLacking(t *testing.T) {
	for word, want := range map[string]bool{
		"Authorization: Bearer abc":      true,
		"-HCookie: a=b":                  true,
		"http://ann:secret@127.0.0.1/":   true,
		"Authorization: Bearer ${TOKEN}": false,
		"X-Trace: 7":                     false,
		"http://127.0.0.1:80/a@b":        false,
	} {
		if got := Lacking(Hushed([]string{"prony", "versus", word})); got != want {
			t.Errorf("%s: %v, want %v", word, got, want)
		}
	}
}
