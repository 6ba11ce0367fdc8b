package answer_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// detailsOf parses lines of "URL: value".
func detailsOf(text string) (details []answer.Detail) {
	for line := range strings.SplitSeq(text, "\n") {
		if url, value, ok := strings.Cut(line, ": "); ok {
			details = append(details, answer.Detail{URL: url, Value: []byte(value)})
		}
	}
	return details
}

// DecodeReply returns what EncodeReply has written. A flipped bit is never decoded as
// another reply.
func FuzzReplyRoundTrip(f *testing.F) {
	f.Add(uint32(0), "", "", "bank.Reply", []byte(nil), uint(0))
	f.Add(uint32(0), "x-number: 7\nX-Number: 8\nx-sum-bin: \x00\xff", "x-cost: 1", "bank.Reply", []byte("\x08\x07"), uint(77))
	f.Add(uint32(0), "Grpc-Status: 0\nempty", ": a", "", []byte("m"), uint(3))
	f.Add(uint32(9), "set-cookie: s=1", "", "no funds", []byte("type.x/E: \x0a\x00\n: \nnone"), uint(8))
	f.Add(uint32(1<<31), "", strings.Repeat("n", 200)+": "+strings.Repeat("v", 20000), "", []byte(nil), uint(1<<20))
	f.Fuzz(func(t *testing.T, code uint32, header, trailer, text string, body []byte, bit uint) {
		p := answer.Reply{Code: code, Header: answer.Metadata(headerOf(header)), Trailer: answer.Metadata(headerOf(trailer))}
		if code == 0 {
			p.Type, p.Message = text, body
		} else {
			p.Text, p.Details = text, detailsOf(string(body))
		}
		b := answer.EncodeReply(nil, p)
		got, err := answer.DecodeReply(b)
		switch sendable := code != 0 || text != ""; {
		case sendable && (err != nil || !sameReply(got, p)):
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		case !sendable && !errors.Is(err, answer.ErrDamaged):
			t.Fatalf("no type: %v", err)
		}
		bit %= uint(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := answer.DecodeReply(b); !errors.Is(err, answer.ErrDamaged) {
			t.Fatalf("bit %d flipped: %+v, %v", bit, got, err)
		}
	})
}

// DecodeReply of any bytes, with a correct checksum too, returns a reply that EncodeReply
// writes as the same bytes, or one of three errors and no reply.
func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(answer.EncodeReply(nil, transferred))
	f.Add(answer.EncodeReply(nil, refused))
	f.Add(answer.EncodeReply(nil, refused)[:20])
	f.Add(answer.Encode(nil, payment))
	for _, content := range []string{
		"\x00\x00\x00\x01T", "\x00\x00\x00\x01Tm", "\x85\x00\x00\x00\x00", "\x00\x01\x01A\x01\x00\x00\x01T",
		"\x05\x00\x00\x01t", "\x05\x00\x00\x01t\x01u\x01v", "\x05\x00\x00\x00\x01u", "\x05\x01\x01a\x02\x01v\x00\x00\x00",
		"\x05\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		f.Add([]byte("\x01\x02" + content))
		f.Add([]byte("\x02\x02" + content))
		f.Add([]byte("\x01\x01" + content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		inputs := [][]byte{b}
		if len(b) >= 2 {
			inputs = append(inputs, framed(b[0], b[1], string(b[2:])))
		}
		for _, input := range inputs {
			before := bytes.Clone(input)
			p, err := answer.DecodeReply(input)
			switch {
			case !bytes.Equal(input, before):
				t.Fatalf("DecodeReply(%x) has changed it to %x", before, input)
			case err == nil && !bytes.Equal(answer.EncodeReply(nil, p), input):
				t.Fatalf("DecodeReply(%x) = %+v, which is written in another way", input, p)
			case err == nil:
			case !isNone(p):
				t.Fatalf("DecodeReply(%x) = %+v, %v", input, p, err)
			case !errors.Is(err, answer.ErrDamaged) && !errors.Is(err, answer.ErrVersion) && !errors.Is(err, answer.ErrKind):
				t.Fatalf("DecodeReply(%x): %v", input, err)
			}
		}
	})
}

// Metadata drops names that are never replayed, in any spelling, and returns all others
// completely. Applying it twice changes nothing.
func FuzzMetadata(f *testing.F) {
	f.Add("x-number: 7\nX-NUMBER: 8\nset-cookie: s=1")
	f.Add("grpc-status: 0\nGRPC-x: 1\n:path: /\nTE: trailers\nContent-Type: a")
	f.Add("empty\nx-sum-bin: \xff\ndate: now\nIdempotent-Replayed: true\n\u212aeep: 1")
	f.Fuzz(func(t *testing.T, text string) {
		h := headerOf(text)
		kept := answer.Metadata(h)
		left := 0
		for name, values := range h {
			if answer.MetadataNeverReplayed(name) {
				continue
			}
			left += len(values)
		}
		for name, values := range kept {
			left -= len(values)
			if name != strings.ToLower(name) || len(values) == 0 || answer.MetadataNeverReplayed(name) {
				t.Errorf("%q is replayed with %q", name, values)
			}
		}
		if left != 0 {
			t.Errorf("%d values are lost of %v: %v", left, h, kept)
		}
		if again := answer.Metadata(kept); !sameHeader(again, kept) {
			t.Errorf("filtered again %v is %v", kept, again)
		}
		p := answer.Reply{Type: "T", Header: kept}
		if got, err := answer.DecodeReply(answer.EncodeReply(nil, p)); err != nil || !sameReply(got, p) {
			t.Errorf("%+v, %v; want %+v", got, err, p)
		}
	})
}
