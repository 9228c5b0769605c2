// Package bucket copies runs to and from a bucket of the S3 protocol: one object for each file,
// named RUN/FILE below a prefix.
//
//	b, err := bucket.Open("s3://bench/nightly", os.Getenv, say)
//	err = b.Push(ctx, "results")
//	err = b.Pull(ctx, "results", bucket.Pick{})
//
// A run counts as complete if its head, run.json, exists; the head is copied last in both
// directions. An object with the size and the checksum of a file is not sent again. Only prony-home
// links this package.
//
// Non-goals: it removes nothing on either side, creates no bucket, and does not interpret runs.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"prony.example/internal/report/runs"
	"prony.example/record"
)

// Good is the file beside the runs that names the last good one, as written by the chart's gate.
const Good = "good"

// Limits: objects below the prefix, bytes of a file (the limit of one PUT), parallel transfers, and
// attempts of a request.
const (
	maxObjects = 1_000_000
	maxFile    = 5 << 30
	abreast    = 8
	tries      = 4
)

// Bucket is a prefix in a bucket.
type Bucket struct {
	client       minio.Core
	name, prefix string // the prefix is empty, or ends with a slash
	host         string
	say          func(string)
}

// Open returns the bucket for a place such as s3://bucket/prefix. Credentials, endpoint and region
// come from the usual environment variables.
func Open(place string, getenv func(string) string, say func(string)) (*Bucket, error) {
	name, prefix, err := Split(place)
	if err != nil {
		return nil, err
	}
	key, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if key == "" || secret == "" {
		return nil, errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	const amazon = "https://s3.amazonaws.com"
	u, err := url.Parse(cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), amazon))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/")+u.RawQuery != "" { // it is not repeated: it may hold a password
		return nil, errors.New("AWS_ENDPOINT_URL must be an address such as " +
			"https://s3.example.com:9000")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(key, secret, getenv("AWS_SESSION_TOKEN")),
		Secure: u.Scheme == "https", MaxRetries: tries,
		Region: cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{minio.Core{Client: client}, name, prefix, u.Scheme + "://" + u.Host, say}, nil
}

// Split splits s3://bucket/prefix. The prefix is empty or ends with a slash.
func Split(place string) (name, prefix string, err error) {
	rest, ok := strings.CutPrefix(place, "s3://")
	name, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !ok || name == "" || prefix != "" && path.Clean("/"+prefix) != "/"+prefix {
		return "", "", fmt.Errorf("%q is not a location in a bucket: use s3://bucket/prefix", place)
	}
	if prefix != "" {
		prefix += "/"
	}
	return name, prefix, nil
}

// object describes a run's file in the bucket.
type object = minio.ObjectInfo

// split splits a key below the prefix into run and file. It rejects keys that Prony would not
// write, because other writers of the bucket may choose any.
func split(key string) (run, file string, ok bool) {
	run, file, _ = strings.Cut(key, "/")
	return run, file, runs.Identifier(run) && proper(file)
}

// proper reports whether a path is valid for a run's file: inside the run's folder and not hidden.
func proper(file string) bool {
	if file == "" || path.Clean("/"+file) != "/"+file || strings.ContainsAny(file, "\\:\x00") {
		return false
	}
	for part := range strings.SplitSeq(file, "/") {
		if strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}

// list returns the objects of the runs whose names have the prefix begin, by run and file.
func (b *Bucket) list(ctx context.Context, begin string) (map[string]map[string]object, error) {
	runs, n := map[string]map[string]object{}, 0
	for info := range b.client.Client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix + begin, Recursive: true}) {
		if info.Err != nil {
			return nil, b.why("list", info.Err)
		}
		if n++; n > maxObjects {
			return nil, fmt.Errorf("list %s: more than %d objects; choose another prefix",
				b, maxObjects)
		}
		run, file, ok := split(strings.TrimPrefix(info.Key, b.prefix))
		if !ok {
			continue
		}
		if runs[run] == nil {
			runs[run] = map[string]object{}
		}
		runs[run][file] = info
	}
	return runs, ctx.Err()
}

// text returns the content of a small object; empty if it is missing.
func (b *Bucket) text(ctx context.Context, key string, most int64) (string, error) {
	from, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return "", nil
	}
	if err != nil {
		return "", b.why("read "+key, err)
	}
	defer from.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(from, most))
	if err != nil {
		return "", b.why("read "+key, err)
	}
	return string(data), nil
}

func (b *Bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

// why returns an error with the cause of a failure and a hint.
func (b *Bucket) why(verb string, err error) error {
	said := minio.ToErrorResponse(err)
	hint := ""
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk) || errors.Is(err, context.Canceled):
	case said.StatusCode == 0: // no answer from the server
		hint = "; check AWS_ENDPOINT_URL, and that the server runs at this address"
	case said.Code == minio.NoSuchBucket:
		hint = "; create the bucket, or use another bucket"
	case said.Code == minio.InvalidAccessKeyID || said.Code == "SignatureDoesNotMatch":
		hint = "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case said.StatusCode == http.StatusForbidden:
		hint = "; the access key needs the permissions ListBucket on the bucket, and GetObject " +
			"and PutObject below the prefix"
	case said.StatusCode == http.StatusMovedPermanently ||
		said.Code == "AuthorizationHeaderMalformed":
		hint = "; check AWS_REGION"
	}
	return fmt.Errorf("%s: %s at %s: %w%s", verb, b, b.host, err, hint)
}

// headLast orders files of a run: the head, which marks it as complete, is last.
func headLast(a, b string) int {
	switch {
	case a == record.RunFile:
		return 1
	case b == record.RunFile:
		return -1
	}
	return strings.Compare(a, b)
}
