package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// shut is a policy that admits no callers of the service.
const shut = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shut}
spec: {podSelector: {matchLabels: {app: service}}, policyTypes: [Ingress]}
`

// reaches reports whether a program in a pod gets any answer from an address.
func reaches(t testing.TB, in, pod, address string) bool {
	t.Helper()
	host, port, _ := strings.Cut(address, ":")
	out, err := exec.Command("kubectl", "exec", "--namespace", in, pod, "--", "/prony", "load",
		"http://"+address+"/", "-n", "1", "-c", "1", "--view=plain", "--timeout=3s",
		"--remote", host).CombinedOutput()
	if err == nil || strings.Contains(string(out), "exit code 4") {
		return true // INVALID because the load is short
	}
	_, why, refused := strings.Cut(string(out), "no connection to ") // with the address of a name
	if to, _, _ := strings.Cut(why, " "); !refused || !strings.HasSuffix(to, ":"+port) {
		t.Fatalf("%s asks %s: %v: %s", pod, address, err, out)
	}
	return false
}

// soon waits until a pod reaches an address, or no longer does.
func soon(t testing.TB, in, pod, address string, want bool) bool {
	t.Helper()
	for range 30 {
		if reaches(t, in, pod, address) == want {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// as returns the pod of the service with another name and other labels.
func as(name, labels string) string {
	pod, _, _ := strings.Cut(loaded, "---\n")
	return "---\n" + strings.Replace(pod, "{name: service, labels: {app: service}}",
		"{name: "+name+", labels: {"+labels+"}}", 1)
}

// If the cluster enforces policies, a release's policies admit exactly the named callers: each
// address that one pod cannot reach is reached by another.
func TestChartPolicies(t *testing.T) {
	needsCluster(t)
	image, in := brought(t, testsets.Tool(t, testsets.Versity)), namespace(t)
	run(t, "", "", "kubectl", "create", "secret", "generic", "bucket", "--namespace", in,
		"--from-literal=AWS_ACCESS_KEY_ID=prony", "--from-literal=AWS_SECRET_ACCESS_KEY=x")
	starts(t, in, image, loaded+server+as("proxy", "app: proxy")+as("like",
		"app.kubernetes.io/name: prony, app.kubernetes.io/instance: x, "+part[:len(part)-1]+
			": generator"))
	run(t, "", shut, "kubectl", "apply", "--namespace", in, "--filename=-")
	// By address: behind a Service, a plugin may treat a neighbour as the node itself.
	address := func(pod string) string {
		return run(t, "", "", "kubectl", "get", "--namespace", in, "pod/"+pod,
			"--output=jsonpath={.status.podIP}") + ":8080"
	}
	service, like := address("service"), address("like")
	if !soon(t, in, "proxy", service, false) {
		t.Skip("nothing enforces network policies in this cluster")
	}
	run(t, "", "", "kubectl", "delete", "--namespace", in, "networkpolicy/shut")
	testsets.Measured(t)
	values := filepath.Join(t.TempDir(), "values.yaml")
	// The lab waits for a generator that no node accepts, which shows that the lab reaches the
	// bucket.
	if err := os.WriteFile(values, []byte(`
url: http://service:8080/hello
generators: 1
generator: {nodeSelector: {no: node}}
results: {bucket: {place: 's3://bench', endpoint: 'http://bucket:7070', secret: bucket}}
serve: {enabled: true, from: [{podSelector: {matchLabels: {app: proxy}}}]}
networkPolicy:
  target: [{to: [{podSelector: {matchLabels: {app: service}}}]}]
  bucket: [{to: [{podSelector: {matchLabels: {app: bucket}}}]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	installs(t, in, image, "--values", values)
	ip := func(component string) (address string) {
		t.Helper()
		for range 60 {
			if address = run(t, "", "", "kubectl", "get", "--namespace", in, "pod", "--selector",
				part+component, "--output=jsonpath={.items[*].status.podIP}"); address != "" {
				return address
			}
			time.Sleep(time.Second)
		}
		t.Fatalf("the %s has no address", component)
		return ""
	}
	page, lab := ip("serve")+":7766", ip("lab")+":7070"
	for _, row := range []struct {
		from, to string
		want     bool
	}{
		{"proxy", page, true}, {"service", page, false}, {"like", page, false},
		{"like", lab, true}, {"service", lab, false}, {"proxy", lab, false},
		{"like", service, true}, {"proxy", service, true}, {"proxy", like, false},
		{"proxy", "kubernetes.default:443", true},
		{"like", "kubernetes.default:443", false},
		{"proxy", "bucket:7070", true}, {"like", "bucket:7070", false},
	} {
		if !soon(t, in, row.from, row.to, row.want) {
			t.Errorf("%s reaches %s: %v, want %v", row.from, row.to, !row.want, row.want)
		}
	}
	run(t, "", "", "helm", "uninstall", "x", "--namespace", in)
}
