package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// session reads a scenario beside a file of data.
func session(t *testing.T, data, text string) (*Scenario, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "users.csv"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadScenario(filepath.Join(dir, "s.yaml"), []byte(text))
}

const users = "\ufeffname,word\nann,\"a,b\"\nben,c\n"

// A setup before a mix, with data, cookies and secrets: all later requests can use its variables.
func TestSessions(t *testing.T) {
	s, err := session(t, users, `name: s
cookies: true
data: users.csv
rows: random
requests:
  - request: POST /login
    body: '{"user": "{name}", "word": "{word}", "key": "${KEY}"}'
    setup: user
    extract:
      sid: {header: set-cookie, regex: 'sid=([^;]+)'}
  - request: GET /me/{sid}
    headers: {X-Name: "{name} ${KEY}"}
    checks:
      - {json: name, is: "{name}"}
  - request: GET /other
    weight: 3
`)
	if err != nil {
		t.Fatal(err)
	}
	columns, rows := s.Table()
	if strings.Join(columns, " ") != "name word" || len(rows) != 2 || string(rows[0][1]) != "a,b" ||
		len(s.DataHash) == 0 {
		t.Errorf("columns %q, rows %q, hash %s", columns, rows, s.DataHash)
	}
	if names, known := s.Variables(); strings.Join(names, " ") != "name word sid" ||
		known[0] != 2 || known[1] != 3 {
		t.Errorf("variables %q, known %d", names, known)
	}
}

func TestWhatNoSessionIs(t *testing.T) {
	check := func(data, text, want string) {
		t.Helper()
		if _, err := session(t, data, "name: s\n"+text); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
	const get = "requests:\n- request: GET /\n"
	check(users, "rows: sequential\n"+get, "rows needs data, but the scenario has no data")
	check(users, "rows: any\ndata: users.csv\n"+get, "rows")
	check("a", "data: users.csv\n"+get, "data file users.csv has no rows")
	check("a\n\"", "data: users.csv\n"+get, "write the file as CSV")
	check("a\nb,c\n", "data: users.csv\n"+get, "write the file as CSV")
	check("A b\nc\n", "data: users.csv\n"+get,
		`"A b" in the first line of users.csv is not a valid column`)
	check("key\nc\n", "data: users.csv\n"+get,
		`"key" in the first line of users.csv is not a valid column`)
	check("a,a\nc,d\n", "data: users.csv\n"+get,
		`"a" in the first line of users.csv is not a valid column`)
	check("", "data: ../users.csv\n"+get, "write the file's path relative to the suite's folder")
	check("", get+"- request: GET /a\n  setup: run\n", "move the setup to the beginning of the "+
		"list")
	check("", "requests:\n- request: GET /\n  setup: run\n", "all requests are setup requests, "+
		"so the load has no requests")
	check("", "requests:\n- request: GET /\n  setup: run\n- request: GET /a\n  setup: user\n"+
		"- request: GET /b\n", "set setup to the same value in all setup requests")
	check("", "requests:\n- request: GET /\n  setup: run\n  weight: 2\n- request: GET /a\n",
		"a setup request is sent once, so it cannot have a weight")
	check("", "requests:\n- request: GET /\n  setup: run\n  pause: 1s\n- request: GET /a\n",
		"a setup request cannot have a pause")
	check("", "cookies: true\nrequests:\n- request: GET /\n  headers: {cookie: a=b}\n",
		"conflicts with cookies: true")
	check(users, "data: users.csv\nflow: true\nrequests:\n- request: GET /\n"+
		"  extract: {name: {json: a}}\n- request: GET /{name}\n",
		"{name} is already a value of the data")
	check(users, "data: users.csv\nrequests:\n- request: GET /\n  setup: run\n"+
		"  extract: {name: {json: a}}\n- request: GET /{name}\n", "{name} is already a column "+
		"of the data")
	check("", "flow: true\nrequests:\n- request: GET /\n  extract: {a: {json: a, regex: b}}\n"+
		"- request: GET /{a}\n", "the check or extract has 2 sources of a value")
	check("", "requests:\n- request: GET /\n  expect: {body: '${KEY}'}\n",
		"the check of a response cannot use it")
	check("", "requests:\n- request: GET /\n  checks: [{body: true, is: '${KEY}'}]\n",
		"the check of a response cannot use it")
}
