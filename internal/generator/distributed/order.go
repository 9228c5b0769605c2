package distributed

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"prony.example/internal/generator"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/extract"
)

// Order is a load and the generator configuration for it.
type Order struct {
	Spec load.Spec
	By   generator.Prony
}

// orderForm is an order's form on the wire. Each generator fills in ${NAME} from its own
// environment, and reads the files that Stack names on its own machine.
type orderForm struct {
	Spec   load.Spec       `json:"spec"` // without its scenario
	Scene  sceneForm       `json:"scene"`
	Engine string          `json:"engine"`
	Stack  *nethttp.Config `json:"stack"`
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
	if !reflect.DeepEqual(f.Scene, sceneOf(o.Spec.Scenario)) {
		return errors.New("a check or an extract of the scenario contains text that is not " +
			"UTF-8, which cannot be sent to generators")
	}
	return nil
}

// form returns the order's form for one part and its cores.
func (o *Order) form(part load.Part, cores []int) *orderForm {
	f := &orderForm{o.Spec, sceneOf(o.Spec.Scenario), o.By.Engine, o.By.Stack}
	f.Spec.Part, f.Spec.Cores = part, cores
	f.Spec.Scenario, f.Spec.Sample = load.Scenario{}, 0
	return f
}

// order converts the form to an order.
func (f *orderForm) order() (o Order, err error) {
	o = Order{f.Spec, generator.Prony{Engine: f.Engine, Stack: f.Stack}}
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
