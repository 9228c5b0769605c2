package importer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/files"
)

var (
	documents = flag.String("documents", "", "folder of documents for BenchmarkDocuments")
	tableFile = flag.String("table", "", "file to which BenchmarkDocuments writes its table")
)

// BenchmarkDocuments drafts a suite from each document below a folder, as prony init does, and
// checks that each of its requests is in the draft or left out for a reason. It counts the requests
// of the document by itself. Folders that are named OWNER+NAME are repositories in its table.
func BenchmarkDocuments(b *testing.B) {
	if *documents == "" {
		b.Skip("name a folder with -documents")
	}
	rows := map[string]string{}
	err := filepath.WalkDir(*documents, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(*documents, name)
		if err != nil {
			return err
		}
		data, err := files.Text(name, files.Results)
		if kind := recognise(data); err != nil || kind == "" || kind == Curl {
			return err // such as a part of another document, or commands, which only a shell counts
		}
		b.Run(inside, func(b *testing.B) {
			for b.Loop() {
				rows[inside] = draftDocument(b, name, inside, data)
			}
		})
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	table := "| Document | Format | Found | In the file | With `--writes` | Without an example | " +
		"Left out |\n|---|---|--:|--:|--:|--:|---|\n"
	for _, inside := range slices.Sorted(maps.Keys(rows)) {
		table += rows[inside]
	}
	if *tableFile != "" {
		if err := os.WriteFile(*tableFile, []byte(table), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// draftDocument drafts and checks one document, and returns its row of the table.
func draftDocument(b *testing.B, name, inside string, data []byte) string {
	folder := filepath.Dir(name)
	d, err := Options{Files: os.DirFS(folder), ReadOnly: true}.draft(name, data)
	if err != nil {
		b.Logf("%v", err)
		_, why, _ := strings.Cut(err.Error(), name)
		return fmt.Sprintf("| %s | | | | | | refused: %s |\n", shown(inside),
			strings.TrimLeft(why, " :"))
	}
	found, err := countRequests(d.Kind, folder, data)
	if d.Found != found || err != nil {
		b.Errorf("found %d, but it has %d, %v", d.Found, found, err)
	}
	checkCounted(b, d, inside)
	if len(d.Requests) > 0 {
		text, trace := print(b, d, inside)
		asSuite(b, text, trace)
	}
	left := strings.Join(d.Left, "<br>")
	b.ReportMetric(float64(d.Found), "found")
	b.ReportMetric(float64(Total(d.Requests)), "taken")
	b.ReportAllocs()
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %s |\n",
		shown(inside), d.Kind, found, Total(d.Requests),
		Total(d.Held), Total(d.Unknown), strings.ReplaceAll(left, "|", `\|`))
}

// shown is a document's repository and path.
func shown(inside string) string {
	repository, tail, _ := strings.Cut(filepath.ToSlash(inside), "/")
	return fmt.Sprintf("%s `%s`", strings.Replace(repository, "+", "/", 1), tail)
}

// countRequests counts the requests of a document, without the code of the importer.
func countRequests(kind, folder string, data []byte) (n int, err error) {
	var doc struct {
		Log        struct{ Entries []any }
		Paths      map[string]any
		Webhooks   map[string]any
		Item       []any
		Collection struct{ Item []any }
	}
	switch kind {
	case Log:
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 {
				n++
			}
		}
		return n, nil
	case OpenAPI:
		if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			err = yaml.Unmarshal(data, &doc)
			break
		}
		fallthrough
	default:
		err = json.Unmarshal(data, &doc)
	}
	for name, item := range doc.Paths {
		if strings.HasPrefix(name, "x-") {
			continue
		}
		n += countOperations(folder, item)
	}
	return n + len(doc.Webhooks) + len(doc.Log.Entries) + countItems(doc.Item) +
		countItems(doc.Collection.Item), err
}

// countOperations counts those of a path, which may be in another file.
func countOperations(folder string, item any) (n int) {
	operations, _ := item.(map[string]any)
	if ref, is := operations["$ref"].(string); is {
		file, _, _ := strings.Cut(ref, "#")
		data, err := os.ReadFile(filepath.Join(folder, path.Clean(file)))
		operations = nil
		if err != nil || yaml.Unmarshal(data, &operations) != nil {
			return 1 // the path, whose operations cannot be read
		}
	}
	for method := range operations {
		if slices.Contains([]string{"get", "head", "post", "put", "patch", "delete", "options",
			"trace", "query"}, method) {
			n++
		}
	}
	return n
}

// countItems counts the requests of a Postman collection.
func countItems(items []any) (n int) {
	for _, item := range items {
		i, _ := item.(map[string]any)
		inside, _ := i["item"].([]any)
		if n += countItems(inside); len(inside) == 0 && i["request"] != nil {
			n++
		}
	}
	return n
}
