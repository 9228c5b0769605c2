package tsdb

import (
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

type node = map[string]any

// tree returns an expression in the form of parse_query.
func tree(of parser.Expr) any {
	switch n := of.(type) {
	case *parser.AggregateExpr:
		return node{"type": "aggregation", "op": n.Op.String(), "expr": tree(n.Expr),
			"param": tree(n.Param), "grouping": list(n.Grouping), "without": n.Without}
	case *parser.BinaryExpr:
		return node{"type": "binaryExpr", "op": n.Op.String(), "lhs": tree(n.LHS),
			"rhs": tree(n.RHS), "matching": matching(n.VectorMatching), "bool": n.ReturnBool}
	case *parser.Call:
		args := []any{}
		for _, arg := range n.Args {
			args = append(args, tree(arg))
		}
		return node{"type": "call", "args": args, "func": node{"name": n.Func.Name,
			"argTypes": n.Func.ArgTypes, "variadic": n.Func.Variadic,
			"returnType": n.Func.ReturnType}}
	case *parser.MatrixSelector:
		out := selector(n.VectorSelector.(*parser.VectorSelector))
		out["type"] = "matrixSelector"
		out["range"], out["rangeExpr"] = n.Range.Milliseconds(), span(n.RangeExpr)
		return out
	case *parser.SubqueryExpr:
		return node{"type": "subquery", "expr": tree(n.Expr), "range": n.Range.Milliseconds(),
			"rangeExpr": span(n.RangeExpr), "offset": n.OriginalOffset.Milliseconds(),
			"offsetExpr": span(n.OriginalOffsetExpr), "step": n.Step.Milliseconds(),
			"stepExpr": span(n.StepExpr), "timestamp": n.Timestamp,
			"startOrEnd": edge(n.StartOrEnd)}
	case *parser.DurationExpr:
		return span(n)
	case *parser.NumberLiteral:
		return node{"type": "numberLiteral", "val": strconv.FormatFloat(n.Val, 'f', -1, 64)}
	case *parser.ParenExpr:
		return node{"type": "parenExpr", "expr": tree(n.Expr)}
	case *parser.StringLiteral:
		return node{"type": "stringLiteral", "val": n.Val}
	case *parser.UnaryExpr:
		return node{"type": "unaryExpr", "op": n.Op.String(), "expr": tree(n.Expr)}
	case *parser.VectorSelector:
		return selector(n)
	}
	return nil // a missing part
}

func selector(n *parser.VectorSelector) node {
	return node{"type": "vectorSelector", "name": n.Name,
		"offset": n.OriginalOffset.Milliseconds(), "offsetExpr": span(n.OriginalOffsetExpr),
		"matchers": matchers(n.LabelMatchers), "timestamp": n.Timestamp,
		"startOrEnd": edge(n.StartOrEnd), "anchored": n.Anchored, "smoothed": n.Smoothed}
}

// span is a duration that may be an expression.
func span(of parser.Expr) any {
	switch n := of.(type) {
	case *parser.DurationExpr:
		if n == nil {
			return nil
		}
		return node{"type": "durationExpr", "op": n.Op.String(), "lhs": span(n.LHS),
			"rhs": span(n.RHS), "wrapped": n.Wrapped}
	case *parser.NumberLiteral:
		if n == nil {
			return nil
		}
		return node{"type": "numberLiteral", "val": strconv.FormatFloat(n.Val, 'f', -1, 64),
			"duration": n.Duration}
	}
	return tree(of)
}

func matching(m *parser.VectorMatching) any {
	if m == nil {
		return nil
	}
	return node{"card": m.Card.String(), "labels": list(m.MatchingLabels), "on": m.On,
		"include": list(m.Include), "fillValues": map[string]*float64{"lhs": m.FillValues.LHS,
			"rhs": m.FillValues.RHS}}
}

func matchers(of []*labels.Matcher) any {
	out := []node{}
	for _, m := range of {
		out = append(out, node{"name": m.Name, "value": m.Value, "type": m.Type.String()})
	}
	return out
}

func list(words []string) []string { return append([]string{}, words...) }

func edge(of parser.ItemType) any {
	if of == 0 {
		return nil
	}
	return of.String()
}
