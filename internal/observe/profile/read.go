package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	pprof "github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of a profile. A minute of a large JVM has some MiB unpacked and about 100,000 messages and
// strings. Decoding may take eight bytes of memory per byte, and 150 for an empty message.
const (
	maxPacked   = 16 << 20 // bytes, so that other files are not read to their end
	maxUnpacked = 16 << 20 // bytes
	maxMessages = 1 << 20  // in the profile, and in these messages
)

// Open reads a profile that a record names. io/fs refuses names outside of the run's folder.
func Open(run fs.FS, name string) (*pprof.Profile, error) {
	info, err := fs.Stat(run, name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read profile %s: it is not a regular file", name)
	}
	var file fs.File
	if err == nil {
		file, err = run.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read profile: %w; the files with details of the run may have "+
			"been deleted",
			err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPacked+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read profile %s: %w", name, err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", name, err)
	}
	return p, nil
}

// Parse decodes a profile in pprof's form, gzipped or not, within bounds, because an unknown
// service may have made it.
func Parse(data []byte) (*pprof.Profile, error) {
	if len(data) > maxPacked {
		return nil, fmt.Errorf("the profile has more than the allowed %d MiB", maxPacked>>20)
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(z, maxUnpacked+1))
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	if len(data) > maxUnpacked {
		return nil, fmt.Errorf("the unpacked profile has more than the allowed %d MiB",
			maxUnpacked>>20)
	}
	parts, err := messages(data, lastMessage)
	if err != nil {
		return nil, err
	}
	if parts > maxMessages {
		return nil, fmt.Errorf("the profile has more than the allowed %d parts", maxMessages)
	}
	p, err := pprof.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	return p, nil
}

// answerBytes limits the response of a program about itself; the largest profiles are below 1 MiB.
const answerBytes = 256 << 20

// Get requests a page of a program.
func Get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	return Body(address, answer)
}

// Body returns a response's body, or an error unless the status is 200.
func Body(address string, answer *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read %s: status %s: %s", address, answer.Status,
			bytes.TrimSpace(data))
	}
	return data, nil
}

// lastMessage is the last field of a profile with messages (profile.proto); strings follow.
const lastMessage = 5

// messages counts fields with a length in a protobuf message, and in nested messages up to field
// within; profiles have no deeper levels. It is at least as strict as the decoder, so that all
// decoded messages have been counted.
func messages(data []byte, within uint64) (n int, err error) {
	for len(data) > 0 {
		// ConsumeTag is not usable: it refuses field numbers that pprof's decoder skips.
		tag, size := protowire.ConsumeVarint(data)
		if size < 0 {
			return n, protowire.ParseError(size)
		}
		data = data[size:]
		kind := protowire.Type(tag & 7)
		if size = protowire.ConsumeFieldValue(1, kind, data); size < 0 {
			return n, protowire.ParseError(size)
		}
		if kind == protowire.BytesType {
			n++
			if tag>>3 <= within {
				content, _ := protowire.ConsumeBytes(data)
				more, err := messages(content, 0)
				if n += more; err != nil {
					return n, err
				}
			}
		}
		data = data[size:]
	}
	return n, nil
}
