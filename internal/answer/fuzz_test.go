package answer_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// headerOf parses lines of "name: value". A line without a colon is a name without values.
func headerOf(text string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case ok:
			h[name] = append(h[name], value)
		case h[name] == nil:
			h[name] = nil
		}
	}
	return h
}

// Decode returns what Encode has written. A flipped bit is never decoded as another answer.
func FuzzRoundTrip(f *testing.F) {
	f.Add(200, "", []byte(nil), uint(0))
	f.Add(201, "Content-Type: application/json\nLocation: /a\nLink: 1\nLink: 2", []byte(`{"id":7}`), uint(77))
	f.Add(404, "Etag\nx: \n: ", []byte("\x00\x01\x02"), uint(8))
	f.Add(-1, "a: b", []byte("x"), uint(3))
	f.Add(999, strings.Repeat("n", 200)+": "+strings.Repeat("v", 20000), bytes.Repeat([]byte("b"), 300), uint(1<<20))
	f.Fuzz(func(t *testing.T, status int, header string, body []byte, bit uint) {
		a := answer.Answer{Status: status, Header: headerOf(header), Body: body}
		b := answer.Encode(nil, a)
		got, err := answer.Decode(b)
		switch sendable := status >= 200 && status <= 999; {
		case sendable && (err != nil || !same(got, a)):
			t.Fatalf("%+v, %v; want %+v", got, err, a)
		case !sendable && !errors.Is(err, answer.ErrDamaged):
			t.Fatalf("status %d: %v", status, err)
		}
		bit %= uint(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := answer.Decode(b); !errors.Is(err, answer.ErrDamaged) {
			t.Fatalf("bit %d flipped: %+v, %v", bit, got, err)
		}
	})
}

// Decode of any bytes, with a correct checksum too, returns an answer that Encode writes as
// the same bytes, or one of three errors and no answer.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(answer.Encode(nil, payment))
	f.Add(answer.Encode(nil, payment)[:40])
	for _, content := range []string{
		"\xc8\x01\x00", "\xc8\x01\x00body", "\xc8\x81\x00\x00", "\xc8\x01\x02\x01b\x00\x01a\x00",
		"\xc8\x01\x01\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xe7\x07\x01\x00\x02\x00\x01v",
	} {
		f.Add([]byte("\x01\x01" + content))
		f.Add([]byte("\x02\x01" + content))
		f.Add([]byte("\x01\x02" + content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		inputs := [][]byte{b}
		if len(b) >= 2 {
			inputs = append(inputs, framed(b[0], b[1], string(b[2:])))
		}
		for _, input := range inputs {
			before := bytes.Clone(input)
			a, err := answer.Decode(input)
			switch {
			case !bytes.Equal(input, before):
				t.Fatalf("Decode(%x) has changed it to %x", before, input)
			case err == nil && !bytes.Equal(answer.Encode(nil, a), input):
				t.Fatalf("Decode(%x) = %+v, which is written in another way", input, a)
			case err == nil:
			case a.Status != 0 || a.Header != nil || a.Body != nil:
				t.Fatalf("Decode(%x) = %+v, %v", input, a, err)
			case !errors.Is(err, answer.ErrDamaged) && !errors.Is(err, answer.ErrVersion) && !errors.Is(err, answer.ErrKind):
				t.Fatalf("Decode(%x): %v", input, err)
			}
		}
	})
}
