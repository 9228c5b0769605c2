package record

import (
	"bytes"
	"cmp"
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

// greatest bounds the numbers of a record: as a Unix time in nanoseconds it is the year 2096. Sums
// and ratios of numbers below it stay finite. Those of 1e308 do not, and JSON cannot represent
// infinities.
const greatest = 4e18

// measurable returns an error that names the first number beyond greatest.
func measurable(v reflect.Value) (err error) {
	walk(v, "", func(number reflect.Value, name string) bool {
		err = fmt.Errorf("%s: the number %g is beyond ±%g, the limit of numbers in records", name,
			float(number), float64(greatest))
		return false
	})
	return err
}

// float returns the value of a signed integer or a floating-point number.
func float(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// walk calls use for every number beyond greatest, with its name in the record, until use returns
// false. It reports whether use never did.
func walk(v reflect.Value, name string, use func(number reflect.Value, name string) bool) bool {
	if (v.CanInt() || v.CanFloat()) && !(math.Abs(float(v)) < greatest) {
		return use(v, name)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || walk(v.Elem(), name, use)
	case reflect.Slice:
		for i := range v.Len() {
			if !walk(v.Index(i), name, use) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue // an internal field of time.Time
			}
			part, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && part != "" {
				part = name + ": " + part
			}
			if !walk(v.Field(i), cmp.Or(part, name), use) {
				return false
			}
		}
	}
	return true
}

// maxCounts bounds the size of a decoded histogram to 2 MiB; histograms of the generator have 2^15
// counts. A range from 1 to the maximum of an int64 with five digits, which fits in 300 bytes,
// would take 49 MiB.
const maxCounts = 1 << 18

// Positions of a histogram's shape (HdrHistogram V2): cookie and length come first; the compressed
// data begins with cookie, length, offset, digits, lowest and highest value.
const (
	outerHead  = 8
	digitsFrom = 12
	shapeEnds  = 32
)

// Histogram decodes the complete distribution. Without a histogram it returns nil and no error.
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

// counts returns the maximum number of counts of a histogram with a shape, for any lowest value.
// Half buckets each cover twice the range of the one before, and no shape has more than five
// digits.
func counts(shape []byte) int {
	digits, highest := binary.BigEndian.Uint32(shape), binary.BigEndian.Uint64(shape[12:])
	half := bits.Len64(uint64(math.Pow10(int(min(digits, 5)))) - 1)
	return (max(0, bits.Len64(highest)-half-1) + 2) << half
}
