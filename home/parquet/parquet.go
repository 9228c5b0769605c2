// Package parquet writes tables of package flat as Parquet files. Only prony-home links it, because
// its library takes longest to compile and few users need it.
package parquet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"prony.example/internal/report/rows"
)

// Write converts a table in the format of rows.Write to Parquet. It fails on incomplete or invalid
// input.
func Write(w io.Writer, from io.Reader) error {
	in := json.NewDecoder(from)
	in.UseNumber() // keep counts of more than 53 bits exact
	var h rows.Head
	if err := in.Decode(&h); err != nil {
		return fmt.Errorf("read a table's columns: %w", err)
	}
	schema, err := schemaOf(h.Columns)
	if err != nil {
		return fmt.Errorf("table %s: %w", h.Table, err)
	}
	out := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Snappy),
		parquet.KeyValueMetadata("prony.table", h.Table),
		parquet.KeyValueMetadata("prony.version", fmt.Sprint(h.Version)))
	for n := 1; ; n++ {
		var values []any
		if err = in.Decode(&values); errors.Is(err, io.EOF) {
			break
		}
		row, err := rowOf(h.Columns, values, err)
		if err == nil {
			_, err = out.WriteRows([]parquet.Row{row})
		}
		if err != nil {
			return fmt.Errorf("row %d of table %s: %w", n, h.Table, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write table %s: %w", h.Table, err)
	}
	return nil
}

// types are the library's types by kind; all columns are optional. Texts repeat often, so they use
// a dictionary.
var types = map[rows.Kind]struct {
	goType  reflect.Type
	options string
}{
	rows.Text:    {reflect.TypeFor[string](), ",optional,dict"},
	rows.Count:   {reflect.TypeFor[int64](), ",optional"},
	rows.Real:    {reflect.TypeFor[float64](), ",optional"},
	rows.Flag:    {reflect.TypeFor[bool](), ",optional"},
	rows.Instant: {reflect.TypeFor[int64](), ",optional,timestamp(microsecond:utc)"},
}

// schemaOf builds the schema from a struct type, because only that keeps the order of columns.
func schemaOf(columns []rows.Column) (*parquet.Schema, error) {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		is, ok := types[c.Kind]
		if !ok {
			return nil, fmt.Errorf("column %s has the unknown kind %q", c.Name, c.Kind)
		}
		fields[i] = reflect.StructField{
			Name: fmt.Sprintf("C%d", i), Type: is.goType,
			Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", c.Name+is.options)),
		}
	}
	return parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()), nil
}

// rowOf converts values for the file.
func rowOf(columns []rows.Column, values []any, err error) (parquet.Row, error) {
	if err == nil && len(values) != len(columns) {
		err = fmt.Errorf("%d values for %d columns", len(values), len(columns))
	}
	if err != nil {
		return nil, err
	}
	row := make(parquet.Row, len(columns))
	for k, c := range columns {
		if values[k] == nil {
			row[k] = parquet.NullValue().Level(0, 0, k)
			continue
		}
		v, err := valueOf(c.Kind, values[k])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		row[k] = parquet.ValueOf(v).Level(0, 1, k)
	}
	return row, nil
}

func valueOf(kind rows.Kind, v any) (any, error) {
	n, isNumber := v.(json.Number)
	_, isText := v.(string)
	_, isFlag := v.(bool)
	switch {
	case isNumber && (kind == rows.Count || kind == rows.Instant):
		return n.Int64()
	case isNumber && kind == rows.Real:
		return n.Float64()
	case isText && kind == rows.Text, isFlag && kind == rows.Flag:
		return v, nil
	}
	return nil, fmt.Errorf("%v is no %s", v, kind)
}
