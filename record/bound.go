package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"reflect"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// greatest is beyond what a record can hold, which is a time of the clock in nanoseconds: it is
// reached in the year 2096. Sums and ratios of what is below stay finite, which those of 1e308 do
// not, and no JSON has a word for what they are then.
const greatest = 4e18

// measurable names the first number that nobody can have measured.
func measurable(v reflect.Value) error {
	x, known := 0.0, true
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	default:
		known = false
	}
	if known && !(math.Abs(x) < greatest) {
		return fmt.Errorf("the number %g, which nothing can be", x)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return measurable(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := measurable(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue // a time's insides
			}
			if err := measurable(v.Field(i)); err != nil {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// maxCounts bounds what a histogram decodes to, 2 MiB; those of the generator have 2^15. One from 1
// to all of an int64 with five digits, which three hundred bytes can ask for, takes 49 MiB.
const maxCounts = 1 << 18

// Where a histogram has its shape (HdrHistogram V2): cookie and length, and packed behind them a
// head of cookie, length, offset, digits, lowest and highest value.
const (
	outerHead  = 8
	digitsFrom = 12
	shapeEnds  = 32
)

// Histogram decodes the distribution whole; without one it is nil, and so is the error.
func (d Dist) Histogram() (*hdrhistogram.Histogram, error) {
	if d.HDR == "" {
		return nil, nil
	}
	packed, err := base64.StdEncoding.DecodeString(d.HDR)
	if err != nil {
		return nil, err
	}
	if len(packed) < outerHead {
		return nil, io.ErrUnexpectedEOF
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[outerHead:]))
	if err != nil {
		return nil, err
	}
	head := make([]byte, shapeEnds)
	if _, err := io.ReadFull(z, head); err != nil {
		return nil, err
	}
	if n := counts(head[digitsFrom:]); n > maxCounts {
		return nil, fmt.Errorf("a histogram that takes more than %d counts", maxCounts)
	}
	return hdrhistogram.Decode([]byte(d.HDR))
}

// counts is how many a histogram of a shape holds at most, whatever its lowest value is: halves of
// buckets, each of which goes twice as far as the one before. No shape has more than five digits.
func counts(shape []byte) int {
	digits, highest := binary.BigEndian.Uint32(shape), binary.BigEndian.Uint64(shape[12:])
	half := bits.Len64(uint64(math.Pow10(int(min(digits, 5)))) - 1)
	return (max(0, bits.Len64(highest)-half-1) + 2) << half
}
