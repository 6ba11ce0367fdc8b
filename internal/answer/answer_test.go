package answer_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"

	"github.com/reqlock/reqlock/internal/answer"
)

func TestMain(m *testing.M) { suite.Main(m) }

// payment is an answer that uses all fields.
var payment = answer.Answer{
	Status: http.StatusCreated,
	Header: http.Header{
		"Location":     {"/payments/7"},
		"Content-Type": {"application/json"},
		"Link":         {"</b>; rel=next", "", "</a>; rel=prev"},
		"Etag":         nil,
	},
	Body: []byte(`{"id":7}`),
}

// framed returns a record with any version, kind and content, and a correct checksum.
func framed(version, kind byte, content string) []byte {
	b := append([]byte{version, kind}, content...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// sameHeader compares headers. A nil list of values equals an empty list.
func sameHeader(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for name, values := range a {
		others, ok := b[name]
		if !ok || len(values) != len(others) || len(values) > 0 && !reflect.DeepEqual(values, others) {
			return false
		}
	}
	return true
}

func same(a, b answer.Answer) bool {
	return a.Status == b.Status && sameHeader(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer.Answer{
		"a payment":         payment,
		"status only":       {Status: http.StatusNoContent},
		"lowest status":     {Status: 200},
		"highest status":    {Status: 999},
		"empty header":      {Status: 200, Header: http.Header{}, Body: []byte{}},
		"empty name":        {Status: 200, Header: http.Header{"": {""}, "\x00": {"\xff"}}},
		"no Content-Type":   {Status: 200, Header: http.Header{"Content-Type": nil}, Body: []byte("<html>")},
		"bytes in the body": {Status: 404, Body: []byte("\x00\xff\x01\x01")},
		"long parts": {
			Status: 200,
			Header: http.Header{strings.Repeat("n", 300): {strings.Repeat("v", 70000)}},
			Body:   bytes.Repeat([]byte("b"), 1<<20),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := answer.Encode(nil, a)
			if n := answer.Len(a); n != len(b) {
				t.Errorf("Len is %d, and the record has %d bytes", n, len(b))
			}
			got, err := answer.Decode(b)
			if err != nil || !same(got, a) || got.Header == nil {
				t.Errorf("%+v, %v; want %+v", got, err, a)
			}
			if again := answer.Encode(nil, got); !bytes.Equal(again, b) {
				t.Error("the answer that was read makes another record")
			}
		})
	}
}

// The bytes of version 1 are in Redis and must stay readable.
func TestEncodingOfVersion1NeverChanges(t *testing.T) {
	t.Parallel()
	const want = "0101" + // version, kind
		"c901" + "04" + // 201, four names
		"0c" + "436f6e74656e742d54797065" + "01" + "10" + "6170706c69636174696f6e2f6a736f6e" +
		"04" + "45746167" + "00" +
		"04" + "4c696e6b" + "03" + "0e" + "3c2f623e3b2072656c3d6e657874" + "00" + "0e" + "3c2f613e3b2072656c3d70726576" +
		"08" + "4c6f636174696f6e" + "01" + "0b" + "2f7061796d656e74732f37" +
		"7b226964223a377d" // the body, to the end
	content, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	written := framed(content[0], content[1], string(content[2:]))
	for range 20 { // the order of a map differs in each loop
		if got := answer.Encode(nil, payment); !bytes.Equal(got, written) {
			t.Fatalf("%x, want %x", got, written)
		}
	}
	if got, err := answer.Decode(written); err != nil || !same(got, payment) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The checksum is that of RFC 3720, so other programs can compute it.
func TestChecksum(t *testing.T) {
	t.Parallel()
	b := answer.Encode(nil, answer.Answer{Status: 200})
	if got := hex.EncodeToString(b); got != "0101c80100"+"c797e209" {
		t.Errorf("%s", got)
	}
}

func TestEncodeAppends(t *testing.T) {
	t.Parallel()
	prefix := []byte("before")
	b := answer.Encode(prefix, payment)
	rest, ok := bytes.CutPrefix(b, prefix)
	if !ok || !bytes.Equal(rest, answer.Encode(nil, payment)) {
		t.Errorf("%q", b)
	}
}

// Appending to the body does not change the record.
func TestBodyDoesNotReachIntoTheRecord(t *testing.T) {
	t.Parallel()
	b := answer.Encode(nil, payment)
	a, err := answer.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(a.Body, "more"...)
	if !bytes.Equal(b, answer.Encode(nil, payment)) {
		t.Error("the record has changed")
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const most = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" // 1<<64 - 1
	content := func(text string) []byte { return framed(1, 1, text) }
	for name, test := range map[string]struct {
		record []byte
		want   error
	}{
		"nothing":              {nil, answer.ErrDamaged},
		"a checksum alone":     {make([]byte, 4), answer.ErrDamaged},
		"zeros":                {make([]byte, 64), answer.ErrDamaged},
		"text":                 {[]byte("HTTP/1.1 200 OK\r\n\r\n"), answer.ErrDamaged},
		"another record after": {append(answer.Encode(nil, payment), answer.Encode(nil, payment)...), answer.ErrDamaged},

		"version 0":         {framed(0, 1, "\xc8\x01\x00"), answer.ErrVersion},
		"version 2":         {framed(2, 1, "\xc8\x01\x00"), answer.ErrVersion},
		"version 2, kind 9": {framed(2, 9, ""), answer.ErrVersion},
		"kind 0":            {framed(1, 0, "\xc8\x01\x00"), answer.ErrKind},
		"kind of gRPC":      {framed(1, 2, "\xc8\x01\x00"), answer.ErrKind},

		"no content":               {content(""), answer.ErrDamaged},
		"no names":                 {content("\xc8\x01"), answer.ErrDamaged},
		"status 0":                 {content("\x00\x00"), answer.ErrDamaged},
		"status 103":               {content("\x67\x00"), answer.ErrDamaged},
		"status 199":               {content("\xc7\x01\x00"), answer.ErrDamaged},
		"status 1000":              {content("\xe8\x07\x00"), answer.ErrDamaged},
		"huge status":              {content(most + "\x00"), answer.ErrDamaged},
		"status over 64 bits":      {content("\xff" + most + "\x00"), answer.ErrDamaged},
		"status that does not end": {content("\xc8"), answer.ErrDamaged},
		"status in a longer form":  {content("\xc8\x81\x00\x00"), answer.ErrDamaged},
		"huge number of names":     {content("\xc8\x01" + most), answer.ErrDamaged},
		"a name too few":           {content("\xc8\x01\x02" + "\x01a\x00"), answer.ErrDamaged},
		"names out of order":       {content("\xc8\x01\x02" + "\x01b\x00" + "\x01a\x00"), answer.ErrDamaged},
		"a name twice":             {content("\xc8\x01\x02" + "\x01a\x00" + "\x01a\x00"), answer.ErrDamaged},
		"an empty name twice":      {content("\xc8\x01\x02" + "\x00\x00" + "\x00\x00"), answer.ErrDamaged},
		"huge name":                {content("\xc8\x01\x01" + most + "a"), answer.ErrDamaged},
		"name longer than all":     {content("\xc8\x01\x01" + "\x02a"), answer.ErrDamaged},
		"no number of values":      {content("\xc8\x01\x01" + "\x01a"), answer.ErrDamaged},
		"huge number of values":    {content("\xc8\x01\x01" + "\x01a" + most), answer.ErrDamaged},
		"a value too few":          {content("\xc8\x01\x01" + "\x01a\x02" + "\x01v"), answer.ErrDamaged},
		"huge value":               {content("\xc8\x01\x01" + "\x01a\x01" + most + "v"), answer.ErrDamaged},
		"value longer than all":    {content("\xc8\x01\x01" + "\x01a\x01" + "\x03vv"), answer.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := answer.Decode(test.record)
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if a.Status != 0 || a.Header != nil || a.Body != nil {
				t.Errorf("a part of an answer: %+v", a)
			}
		})
	}
}

// No error matches another one.
func TestErrorsAreDistinct(t *testing.T) {
	t.Parallel()
	all := []error{answer.ErrDamaged, answer.ErrVersion, answer.ErrKind}
	for i, a := range all {
		for j, b := range all {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("%v is %v: %v", a, b, i != j)
			}
		}
	}
}

// A status for which net/http would panic is never replayed.
func TestEncodedStatusThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{-1, 0, 99, 100, 199, 1000} {
		if a, err := answer.Decode(answer.Encode(nil, answer.Answer{Status: status})); !errors.Is(err, answer.ErrDamaged) {
			t.Errorf("%d: %+v, %v", status, a, err)
		}
	}
}

// Each flipped bit and each cut is detected as damage.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	b := answer.Encode(nil, payment)
	for i := range 8 * len(b) {
		damaged := bytes.Clone(b)
		damaged[i/8] ^= 1 << (i % 8)
		if a, err := answer.Decode(damaged); !errors.Is(err, answer.ErrDamaged) {
			t.Errorf("bit %d: %+v, %v", i, a, err)
		}
	}
	for n := range b {
		if a, err := answer.Decode(b[:n]); !errors.Is(err, answer.ErrDamaged) {
			t.Errorf("cut to %d bytes: %+v, %v", n, a, err)
		}
	}
}
