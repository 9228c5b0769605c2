package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// space makes a namespace for a test.
func space(t *testing.T, name string) string {
	t.Helper()
	needsCluster(t)
	name = home.namespace + "-" + name
	kubectl(t, "", "create", "namespace", name)
	t.Cleanup(func() {
		kubectl(t, "", "delete", "namespace", name, "--ignore-not-found")
	})
	return name
}

// configure makes kubectl use a changed copy of its configuration for the rest of a test.
func configure(t *testing.T, change func(cluster, user map[string]any)) {
	t.Helper()
	var config map[string]any
	raw := kubectl(t, "", "config", "view", "--raw", "--minify", "--output=json")
	if err := json.Unmarshal([]byte(raw), &config); err != nil {
		t.Fatal(err)
	}
	of := func(list, field string) map[string]any {
		first := config[list].([]any)[0].(map[string]any)
		return first[field].(map[string]any)
	}
	change(of("clusters", "cluster"), of("users", "user"))
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// roleOf grants rights in a namespace, and of the cluster, to a user.
func roleOf(namespace, user string, of []right) object {
	rules, nodes := []object{}, []object{}
	for _, r := range of {
		resource := strings.TrimSuffix(r.resource+"/"+r.sub, "/")
		rule := object{"apiGroups": []string{r.group}, "resources": []string{resource},
			"verbs": []string{r.verb}}
		if r == noding {
			nodes = append(nodes, rule)
		} else {
			rules = append(rules, rule)
		}
	}
	const api = "rbac.authorization.k8s.io"
	bound := func(kind, role, ns string, rules []object) []any {
		subjects := []object{{"kind": "User", "name": user, "apiGroup": api}}
		return []any{object{"apiVersion": api + "/v1", "kind": role,
			"metadata": object{"name": user, "namespace": ns}, "rules": rules},
			object{"apiVersion": api + "/v1", "kind": kind, "subjects": subjects,
				"metadata": object{"name": user, "namespace": ns},
				"roleRef":  object{"kind": role, "name": user, "apiGroup": api}}}
	}
	return object{"apiVersion": "v1", "kind": "List", "items": append(
		bound("RoleBinding", "Role", namespace, rules),
		bound("ClusterRoleBinding", "ClusterRole", "", nodes)...)}
}

// The error names each missing right, with the manifest that grants it. With exactly these rights,
// a pod can run and be removed.
func TestRights(t *testing.T) {
	namespace := space(t, "rights")
	user, admin := namespace, os.Getenv("KUBECONFIG")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "clusterrole,clusterrolebinding", user)
	})
	all := slices.Concat(rights, servicing, []right{noding})
	grant := func(of []right) {
		t.Helper()
		kubectl(t, string(text(roleOf(namespace, user, of))), "apply", "--filename=-",
			"--kubeconfig="+admin)
	}
	grant(all)
	configure(t, func(_, who map[string]any) { who["as"] = user })
	o := Options{Namespace: namespace, Service: true}
	for i, r := range all {
		grant(slices.Delete(slices.Clone(all), i, i+1))
		want := "this user may not " + r.words() + " in namespace " + namespace
		// The API's cached copy of roles may be old.
		testsets.Eventually(t, "refusal: "+want, func() bool {
			l, _, err := New(t.Context(), o)
			if err == nil {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				return false
			}
			return strings.Contains(err.Error(), want) && strings.Contains(err.Error(), grants)
		})
	}
	grant(all)
	testsets.Eventually(t, "all rights", func() bool {
		l, _, err := New(t.Context(), o)
		return err == nil && l.Close() == nil
	})
	p := start(t, launcher(t, o), launch.Spec{Args: []string{"/act", "act-forever"}, Port: 80})
	says(t, p, "ready")
	if err := p.Stop(5 * time.Second); err != nil || p.Exit() != "exit status 0" {
		t.Errorf("it ended with %q, %v", p.Exit(), err)
	}
	t.Setenv("KUBECONFIG", admin) // for cleaning up
}

// The same holds for each additional right for a reader, which other labs do not need.
func TestReaderRights(t *testing.T) {
	namespace := space(t, "attach")
	user, admin := namespace, os.Getenv("KUBECONFIG")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "clusterrole,clusterrolebinding", user)
	})
	farLauncher(t, Options{}) // loads its image, which needs no right of the user
	grant := func(of []right) {
		t.Helper()
		kubectl(t, string(text(roleOf(namespace, user, slices.Concat(rights, of)))), "apply",
			"--filename=-", "--kubeconfig="+admin)
	}
	grant(attaching)
	configure(t, func(_, who map[string]any) { who["as"] = user })
	o := Options{Namespace: namespace, Reader: inPod, ReaderImage: readers.image}
	for i, r := range attaching {
		grant(slices.Delete(slices.Clone(attaching), i, i+1))
		want := "this user may not " + r.words() + " in namespace " + namespace
		testsets.Eventually(t, "refusal: "+want, func() bool {
			l, _, err := New(t.Context(), o)
			if err == nil {
				return l.Close() != nil
			}
			return strings.Contains(err.Error(), want) && strings.Contains(err.Error(), grants)
		})
	}
	grant(attaching)
	testsets.Eventually(t, "all rights", func() bool {
		l, _, err := New(t.Context(), o)
		return err == nil && l.Close() == nil
	})
	p := start(t, farLauncher(t, o), launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	if err := p.Stop(5 * time.Second); err != nil || p.Exit() != "exit status 0" {
		t.Errorf("it ended with %q, %v", p.Exit(), err)
	}
	t.Setenv("KUBECONFIG", admin) // for cleaning up
}

// refuses launches a spec that cannot start, and checks the error.
func refuses(t *testing.T, l *Launcher, s launch.Spec, want string) {
	t.Helper()
	s.Name, s.LogFile = "t", filepath.Join(t.TempDir(), "log")
	if s.Image == "" {
		s.Image = home.image
	}
	p, err := l.Launch(context.Background(), s)
	if err == nil {
		t.Fatalf("it was launched; stopped with %v", p.Stop(0))
	}
	if !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("error is %v, want %s", err, want)
	}
	if names := strings.Fields(kubectl(t, "", "get", "jobs,pods", "--output=name",
		"--namespace="+l.cluster.Namespace, "--selector="+labelLab)); len(names) > 0 {
		t.Errorf("%q are left", names)
	}
}

func TestCannotStart(t *testing.T) {
	l := launcher(t, Options{})
	refuses(t, l, launch.Spec{Image: "no/such:image"}, `^launch t: ErrImageNeverPull: .*no/such:`+
		`image.*; the node does not have the image.*PRONY_KUBERNETES_LOAD$`)
	refuses(t, l, launch.Spec{Image: "No Such"},
		`InvalidImageName: .*; the name is not a valid image name$`)
	refuses(t, l, launch.Spec{CPUs: 512, MemoryBytes: 64 << 20},
		`^launch t: no node has accepted the pod `+
			`for 3\ds: FailedScheduling: .*Insufficient cpu.*; free processors on the node`)
	l = launcher(t, Options{Nodes: "prony.test/disk=none"})
	refuses(t, l, launch.Spec{},
		`no node has accepted the pod.*; no node has the labels of PRONY_KUBERNETES_NODES`)
	namespace := space(t, "quota")
	kubectl(t, "", "create", "quota", "little", "--hard=pods=0", "--namespace="+namespace)
	l = launcher(t, Options{Namespace: namespace})
	testsets.Eventually(t, "quota", func() bool {
		return strings.Contains(kubectl(t, "", "get", "quota", "little", "--output=json",
			"--namespace="+namespace), `"used"`)
	})
	refuses(t, l, launch.Spec{},
		`^launch t: the cluster does not create the pod: .*exceeded quota: little.*`+
			`; the namespace's quota is used up`)
	kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	kubectl(t, "", "delete", "quota", "little", "--namespace="+namespace)
	refuses(t, l, launch.Spec{Args: []string{"/etc"}, Mounts: []launch.Mount{{Path: "/etc"}}},
		`violates PodSecurity.*; the namespace does not admit the pod`)
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}}) // allowed by the quota
	says(t, p, "ready")
}

// The end of a pod by the cluster is described with its cause.
func TestEndedByTheCluster(t *testing.T) {
	l := launcher(t, Options{})
	p := start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	name := p.pod.Metadata.Name
	kubectl(t, string(text(object{"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata": object{"name": name, "namespace": home.namespace}})), "create", "--raw",
		"/api/v1/namespaces/"+home.namespace+"/pods/"+name+"/eviction", "--filename=-")
	testsets.Eventually(t, "end", p.Ended)
	const evicted = "exit status 0; the cluster reported EvictionByEvictionAPI: "
	if !strings.HasPrefix(p.Exit(), evicted) {
		t.Errorf("evicted the process ended with %q, want %s", p.Exit(), evicted)
	}
	namespace := space(t, "gone")
	l = launcher(t, Options{Namespace: namespace})
	p = start(t, l, launch.Spec{Args: []string{"/act", "act-forever"}})
	says(t, p, "ready")
	kubectl(t, "", "delete", "namespace", namespace, "--wait=false")
	_, _, err := New(t.Context(), Options{Namespace: namespace})
	if err == nil || !strings.Contains(err.Error(), "the namespace is being deleted: choose") &&
		!strings.Contains(err.Error(), "create the namespace with kubectl create namespace") {
		t.Errorf("a lab in a namespace that goes: %v", err)
	}
	testsets.Eventually(t, "end", p.Ended)
	if !strings.Contains(p.Exit(), "exit status 0") && !strings.Contains(p.Exit(), "deleted") {
		t.Errorf("its namespace deleted it ended with %q", p.Exit())
	}
	if err := p.Stop(0); err != nil {
		t.Error(err)
	}
	_, _, err = New(t.Context(), Options{Namespace: home.namespace + "-never"})
	if err == nil || !strings.Contains(err.Error(),
		"create the namespace with kubectl create namespace") {
		t.Errorf("a lab in a namespace that never was: %v", err)
	}
}

// way is a proxy to the API server that can be closed.
type way struct {
	address, to string

	mu    sync.Mutex
	l     net.Listener
	conns []net.Conn
}

func (w *way) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.l, w.address = l, l.Addr().String()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", w.to)
			if err != nil {
				in.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, in, out)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); out.Close() }() // either end may close
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
}

func (w *way) close() {
	w.l.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// byWay makes kubectl reach the API server through a proxy that can be closed.
func byWay(t *testing.T) *way {
	t.Helper()
	w := &way{address: "127.0.0.1:0"}
	configure(t, func(cluster, _ map[string]any) {
		u, err := url.Parse(cluster["server"].(string))
		if err != nil {
			t.Fatal(err)
		}
		w.to = hostPort(u.String())
		w.open(t)
		cluster["server"], cluster["tls-server-name"] = "https://"+w.address, u.Hostname()
	})
	return w
}

// While the API server is unavailable, a pod runs on, its log arrives later, and the outage is
// recorded. A launch in this time waits, or reports that no server answers.
func TestAPIAway(t *testing.T) {
	needsCluster(t)
	w := byWay(t)
	l := launcher(t, Options{})
	p := start(t, l, launch.Spec{Port: 8080, Args: []string{"/act", "act-listens"},
		Env: []string{"HOST=0.0.0.0", "PORT=8080"}})
	says(t, p, "ready")
	if got := p.Pod(t.Context()); len(got.APIOutages) > 0 {
		t.Errorf("it is away before: %+v", got)
	}
	const away = 10 * time.Second
	w.close()
	before := clock.Mono()
	time.Sleep(away / 2)
	if _, _, err := New(t.Context(), Options{}); err == nil ||
		!strings.Contains(err.Error(), "the API server does not respond") {
		t.Errorf("a lab without a server: %v", err)
	}
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil || p.Ended() || cgroup.Born(p.Main()) == "" {
		t.Fatalf("the pod does not go on: %v, %q", err, p.Exit())
	}
	c.Close()
	time.Sleep(away - time.Duration(clock.Mono()-before))
	w.open(t)
	t.Cleanup(w.close)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	closed := func() bool {
		a := p.log.absences()
		time.Sleep(100 * time.Millisecond)
		return len(a) == 1 && p.log.absences()[0] == a[0]
	}
	testsets.Eventually(t, "its return", closed)
	got := p.Pod(now).APIOutages
	if len(got) != 1 || got[0].DurationNs < int64(away-time.Second) ||
		got[0].DurationNs > int64(3*away) {
		t.Errorf("away is %+v, want about %v", got, away)
	}
	w.close() // during its end
	time.AfterFunc(away/4, func() { w.open(t) })
	if err := p.Stop(0); err != nil {
		t.Error(err)
	}
	if p.Exit() == "" || strings.Count(fmt.Sprint(p.Log(99)), "ready") != 1 {
		t.Errorf("the process ended with %q and printed %q", p.Exit(), p.Log(99))
	}
}
