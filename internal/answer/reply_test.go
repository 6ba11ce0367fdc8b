package answer_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

type md = map[string][]string

// transferred is a reply with a message, and refused one with a status.
var (
	transferred = answer.Reply{
		Header:  md{"x-number": {"7"}, "x-sum-bin": {"\x00\xff", ""}},
		Trailer: md{"x-cost": {"2", "1"}},
		Type:    "bank.Reply",
		Message: []byte("\x08\x07"),
	}
	refused = answer.Reply{
		Code: 9, Text: "no funds",
		Details: []answer.Detail{{URL: "type.x/E", Value: []byte("\x0a\x00")}, {}},
		Header:  md{}, Trailer: md{"x-cost": {"0"}},
	}
)

func sameDetail(a, b answer.Detail) bool { return a.URL == b.URL && bytes.Equal(a.Value, b.Value) }

func sameReply(a, b answer.Reply) bool {
	return a.Code == b.Code && a.Type == b.Type && bytes.Equal(a.Message, b.Message) &&
		a.Text == b.Text && slices.EqualFunc(a.Details, b.Details, sameDetail) &&
		sameHeader(a.Header, b.Header) && sameHeader(a.Trailer, b.Trailer)
}

func isNone(p answer.Reply) bool {
	return sameReply(p, answer.Reply{}) && p.Header == nil && p.Trailer == nil && p.Message == nil && p.Details == nil
}

func TestReplyRoundTrip(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]answer.Reply{
		"a message":                transferred,
		"a status":                 refused,
		"an empty message":         {Type: "google.protobuf.Empty"},
		"a bare status":            {Code: 5},
		"highest code":             {Code: math.MaxUint32, Text: "\xff"},
		"bytes in the message":     {Type: "T", Message: []byte("\x00\xff\x01\x02")},
		"an empty name":            {Type: "T", Header: md{"": {""}}},
		"header and trailer agree": {Type: "T", Header: md{"a": {"1"}}, Trailer: md{"a": {"1"}}},
		"long parts": {
			Code: 3, Text: strings.Repeat("t", 300),
			Trailer: md{strings.Repeat("n", 300): {strings.Repeat("v", 70000)}},
			Details: []answer.Detail{{URL: strings.Repeat("u", 200), Value: make([]byte, 1<<20)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := answer.EncodeReply(nil, p)
			got, err := answer.DecodeReply(b)
			if err != nil || !sameReply(got, p) || got.Header == nil || got.Trailer == nil {
				t.Errorf("%+v, %v; want %+v", got, err, p)
			}
			if again := answer.EncodeReply(nil, got); !bytes.Equal(again, b) {
				t.Error("the reply that was read makes another record")
			}
		})
	}
}

// The bytes of version 1 are in Redis and must stay readable.
func TestWhatIsWrittenOfReplies(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]answer.Reply{
		"0102" + "00" + // version, kind, OK
			"02" + "08782d6e756d626572" + "01" + "0137" + "09782d73756d2d62696e" + "02" + "0200ff" + "00" +
			"01" + "06782d636f7374" + "02" + "0132" + "0131" +
			"0a62616e6b2e5265706c79" + "0807": transferred, // the type, and the message to the end
		"0102" + "09" + // FAILED_PRECONDITION
			"00" + "01" + "06782d636f7374" + "01" + "0130" +
			"086e6f2066756e6473" + "08747970652e782f45" + "020a00" + "00" + "00": refused,
	} {
		content, err := hex.DecodeString(want)
		if err != nil {
			t.Fatal(err)
		}
		written := framed(content[0], content[1], string(content[2:]))
		for range 20 { // the order of a map differs in each loop
			if got := answer.EncodeReply(nil, p); !bytes.Equal(got, written) {
				t.Fatalf("%x, want %x", got, written)
			}
		}
		if got, err := answer.DecodeReply(written); err != nil || !sameReply(got, p) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Fields that do not belong to the kind of reply are not written.
func TestReplyIsAMessageOrAStatus(t *testing.T) {
	t.Parallel()
	both := refused
	both.Type, both.Message = transferred.Type, transferred.Message
	if got, err := answer.DecodeReply(answer.EncodeReply(nil, both)); err != nil || !sameReply(got, refused) {
		t.Errorf("%+v, %v", got, err)
	}
	both.Code = 0
	got, err := answer.DecodeReply(answer.EncodeReply(nil, both))
	if err != nil || got.Text != "" || got.Details != nil || got.Type != transferred.Type {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEncodeReplyAppends(t *testing.T) {
	t.Parallel()
	prefix := []byte("before")
	rest, ok := bytes.CutPrefix(answer.EncodeReply(prefix, transferred), prefix)
	if !ok || !bytes.Equal(rest, answer.EncodeReply(nil, transferred)) {
		t.Errorf("%q", rest)
	}
}

// Appending to the message or to a detail does not change the record.
func TestReplyDoesNotReachIntoTheRecord(t *testing.T) {
	t.Parallel()
	for _, p := range []answer.Reply{transferred, refused} {
		b := answer.EncodeReply(nil, p)
		got, err := answer.DecodeReply(b)
		if err != nil {
			t.Fatal(err)
		}
		_ = append(got.Message, "more"...)
		for _, detail := range got.Details {
			_ = append(detail.Value, "more"...)
		}
		if !bytes.Equal(b, answer.EncodeReply(nil, p)) {
			t.Error("the record has changed")
		}
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	t.Parallel()
	const most = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" // 1<<64 - 1
	const empty = "\x00\x00"                                // header and trailer
	content := func(text string) []byte { return framed(1, 2, text) }
	for name, test := range map[string]struct {
		record []byte
		want   error
	}{
		"nothing":              {nil, answer.ErrDamaged},
		"zeros":                {make([]byte, 64), answer.ErrDamaged},
		"another record after": {append(answer.EncodeReply(nil, refused), answer.EncodeReply(nil, refused)...), answer.ErrDamaged},

		"version 2":      {framed(2, 2, "\x00"+empty+"\x01T"), answer.ErrVersion},
		"kind 3":         {framed(1, 3, "\x00"+empty+"\x01T"), answer.ErrKind},
		"an HTTP answer": {answer.Encode(nil, payment), answer.ErrKind},

		"no content":                {content(""), answer.ErrDamaged},
		"code in a longer form":     {content("\x85\x00" + empty + "\x00"), answer.ErrDamaged},
		"code over 32 bits":         {content("\x85\x80\x80\x80\x10" + empty + "\x00"), answer.ErrDamaged},
		"no header":                 {content("\x05"), answer.ErrDamaged},
		"no trailer":                {content("\x05\x00"), answer.ErrDamaged},
		"header out of order":       {content("\x00\x02\x01b\x01\x00\x01a\x01\x00\x00\x01T"), answer.ErrDamaged},
		"a name twice":              {content("\x00\x02\x01a\x01\x00\x01a\x01\x00\x00\x01T"), answer.ErrDamaged},
		"an upper-case name":        {content("\x00\x01\x01A\x01\x00\x00\x01T"), answer.ErrDamaged},
		"an upper-case trailer":     {content("\x00\x00\x01\x01A\x01\x00\x01T"), answer.ErrDamaged},
		"a name without a value":    {content("\x00\x01\x01a\x00\x00\x01T"), answer.ErrDamaged},
		"a trailer without a value": {content("\x00\x00\x01\x01a\x00\x01T"), answer.ErrDamaged},
		"huge number of names":      {content("\x00" + most), answer.ErrDamaged},
		"no type":                   {content("\x00" + empty), answer.ErrDamaged},
		"an empty type":             {content("\x00" + empty + "\x00"), answer.ErrDamaged},
		"an empty type, a message":  {content("\x00" + empty + "\x00m"), answer.ErrDamaged},
		"huge type":                 {content("\x00" + empty + most + "T"), answer.ErrDamaged},
		"no text":                   {content("\x05" + empty), answer.ErrDamaged},
		"text longer than all":      {content("\x05" + empty + "\x02t"), answer.ErrDamaged},
		"a detail without a value":  {content("\x05" + empty + "\x00\x01u"), answer.ErrDamaged},
		"a detail's URL too long":   {content("\x05" + empty + "\x00\x02u"), answer.ErrDamaged},
		"a detail's value too long": {content("\x05" + empty + "\x00\x01u\x02v"), answer.ErrDamaged},
		"a detail's value is huge":  {content("\x05" + empty + "\x00\x01u" + most), answer.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := answer.DecodeReply(test.record)
			if !errors.Is(err, test.want) || !isNone(p) {
				t.Errorf("%+v, %v; want %v", p, err, test.want)
			}
		})
	}
	if _, err := answer.Decode(answer.EncodeReply(nil, transferred)); !errors.Is(err, answer.ErrKind) {
		t.Errorf("a reply is read as an HTTP answer: %v", err)
	}
}

// Each flipped bit and each cut is detected as damage.
func TestDamageOfRepliesIsFound(t *testing.T) {
	t.Parallel()
	for _, written := range []answer.Reply{transferred, refused} {
		b := answer.EncodeReply(nil, written)
		for i := range 8 * len(b) {
			damaged := bytes.Clone(b)
			damaged[i/8] ^= 1 << (i % 8)
			if p, err := answer.DecodeReply(damaged); !errors.Is(err, answer.ErrDamaged) {
				t.Errorf("bit %d: %+v, %v", i, p, err)
			}
		}
		for n := range b {
			if p, err := answer.DecodeReply(b[:n]); !errors.Is(err, answer.ErrDamaged) {
				t.Errorf("cut to %d bytes: %+v, %v", n, p, err)
			}
		}
	}
}
