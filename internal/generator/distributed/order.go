package distributed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"prony.example/internal/generator"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/extract"
	"prony.example/load/network"
	"prony.example/load/pace"
)

// Order is a load and the generator configuration for it.
type Order struct {
	Spec load.Spec
	By   generator.Prony
}

// orderForm is an order's form on the wire. Each generator fills in ${NAME} from its own
// environment.
type orderForm struct {
	Name        string         `json:"name"`
	Address     netip.AddrPort `json:"address"`
	Host        string         `json:"host"`
	Scene       sceneForm      `json:"scene"`
	Model       string         `json:"model"`
	Connections int            `json:"connections"`
	Most        int            `json:"most"`
	Schedule    pace.Schedule  `json:"schedule"`
	Users       *load.Users    `json:"users"`
	Requests    int64          `json:"requests"`
	Churn       int            `json:"churn"`
	Trace       load.Trace     `json:"trace"`
	Part        load.Part      `json:"part"`
	Seed        uint64         `json:"seed"`
	Lead        time.Duration  `json:"lead"`
	Window      time.Duration  `json:"window"`
	Drain       time.Duration  `json:"drain"`
	Timeout     time.Duration  `json:"timeout"`
	Network     network.Delay  `json:"network"`
	Pacing      string         `json:"pacing"`
	Cores       []int          `json:"cores"`
	Ahead       bool           `json:"ahead"`
	Engine      string         `json:"engine"`
	Stack       *stackForm     `json:"stack"`
}

type stackForm struct {
	Protocol, Network, Address, Host, Path string
	Streams                                int
	Insecure                               bool
	CA                                     string
	Cert, Key                              string // paths on the generator's machine
}

// sceneForm is a scenario with its extractions and checks in separate lists, by request.
type sceneForm struct {
	Scenario load.Scenario `json:"scenario"`
	Setup    []looks       `json:"setup"`
	Requests []looks       `json:"requests"`
}

type looks struct {
	Body     []byte              `json:"body"` // as bytes, because texts of JSON must be Unicode
	Want     []byte              `json:"want"`
	Checks   []extract.CheckForm `json:"checks"`
	Captures []captureForm       `json:"captures"`
}

type captureForm struct {
	Var  string       `json:"var"`
	From extract.Form `json:"from"`
}

// check returns an error if an order cannot be sent: texts of JSON must be Unicode.
func (o *Order) check() error {
	for _, r := range slices.Concat(o.Spec.Scenario.Setup, o.Spec.Scenario.Requests) {
		texts := []string{r.Name, r.Method, r.Path, r.Type}
		for _, h := range r.Headers {
			texts = append(texts, h.Name, h.Value)
		}
		for _, s := range texts {
			if !utf8.ValidString(s) {
				return fmt.Errorf("%q is not valid UTF-8, but generators receive only UTF-8 "+
					"text; in a path, write such a byte as %%xx", s)
			}
		}
	}
	return o.round()
}

// round returns an error if encoding and decoding change an order.
func (o *Order) round() error {
	b, err := json.Marshal(o.form(load.Part{}, nil))
	if err != nil {
		return fmt.Errorf("encode the load for generators: %w", err)
	}
	var f orderForm
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("decode the load as generators do: %w", err)
	}
	if !reflect.DeepEqual(&f, o.form(load.Part{}, nil)) {
		return errors.New("a check or an extract of the scenario contains text that is not " +
			"UTF-8, which cannot be sent to generators")
	}
	return nil
}

// form returns the order's form for one part and its cores.
func (o *Order) form(part load.Part, cores []int) *orderForm {
	s := &o.Spec
	f := &orderForm{
		Name: s.Name, Address: s.Address, Host: s.Host, Scene: sceneOf(s.Scenario), Model: s.Model,
		Connections: s.Connections, Most: s.Most, Schedule: s.Schedule, Users: s.Users,
		Requests: s.Requests, Churn: s.Churn, Trace: s.Trace, Part: part,
		Seed: s.Seed, Lead: s.Lead, Window: s.Window, Drain: s.Drain, Timeout: s.Timeout,
		Network: s.Network, Pacing: s.Pacing, Cores: cores, Ahead: s.Ahead, Engine: o.By.Engine,
	}
	if c := o.By.Stack; c != nil {
		f.Stack = &stackForm{c.Protocol, c.Network, c.Address, c.Host, c.Path, c.Streams,
			c.Insecure, c.CA, c.Cert, c.Key}
	}
	return f
}

// order converts the form to an order.
func (f *orderForm) order() (o Order, err error) {
	o.Spec = load.Spec{
		Name: f.Name, Address: f.Address, Host: f.Host, Model: f.Model,
		Connections: f.Connections, Most: f.Most, Schedule: f.Schedule, Users: f.Users,
		Requests: f.Requests, Churn: f.Churn, Trace: f.Trace, Part: f.Part,
		Seed: f.Seed, Lead: f.Lead, Window: f.Window, Drain: f.Drain, Timeout: f.Timeout,
		Network: f.Network, Pacing: f.Pacing, Cores: f.Cores, Ahead: f.Ahead,
	}
	o.By.Engine = f.Engine
	if c := f.Stack; c != nil {
		o.By.Stack = &nethttp.Config{Protocol: c.Protocol, Network: c.Network, Address: c.Address,
			Host: c.Host, Path: c.Path, Streams: c.Streams, Insecure: c.Insecure, CA: c.CA,
			Cert: c.Cert, Key: c.Key}
	}
	o.Spec.Scenario, err = f.Scene.scenario()
	return o, err
}

func sceneOf(s load.Scenario) sceneForm {
	f := sceneForm{Scenario: s}
	f.Scenario.Setup, f.Setup = apart(s.Setup)
	f.Scenario.Requests, f.Requests = apart(s.Requests)
	return f
}

// apart separates the parts of requests that are not plain data.
func apart(requests []load.Request) (stripped []load.Request, extra []looks) {
	stripped = slices.Clone(requests)
	for i := range stripped {
		l := looks{Body: []byte(stripped[i].Body), Want: []byte(stripped[i].Want)}
		stripped[i].Body, stripped[i].Want = "", ""
		for k := range stripped[i].Checks {
			l.Checks = append(l.Checks, stripped[i].Checks[k].Form())
		}
		for _, e := range stripped[i].Extract {
			l.Captures = append(l.Captures, captureForm{e.Var, e.From.Form()})
		}
		stripped[i].Checks, stripped[i].Extract = nil, nil
		extra = append(extra, l)
	}
	return stripped, extra
}

func (f *sceneForm) scenario() (load.Scenario, error) {
	s := f.Scenario
	vars := slices.Clone(s.Columns)
	for _, all := range [][]looks{f.Setup, f.Requests} {
		for _, l := range all {
			for _, e := range l.Captures {
				if !slices.Contains(vars, e.Var) {
					vars = append(vars, e.Var)
				}
			}
		}
	}
	for _, x := range []struct {
		requests []load.Request
		looks    []looks
	}{{s.Setup, f.Setup}, {s.Requests, f.Requests}} {
		if len(x.requests) != len(x.looks) {
			return s, errGarbage
		}
		for i, l := range x.looks {
			if err := l.into(&x.requests[i], vars); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (l *looks) into(r *load.Request, vars []string) error {
	r.Body, r.Want = string(l.Body), string(l.Want)
	for _, c := range l.Checks {
		check, err := c.Check(vars)
		if err != nil {
			return err
		}
		r.Checks = append(r.Checks, check)
	}
	for _, e := range l.Captures {
		from, err := e.From.Finder()
		if err != nil {
			return err
		}
		r.Extract = append(r.Extract, extract.Capture{Var: e.Var, From: from})
	}
	return nil
}
