package record_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

type md = map[string][]string

// transferred is a reply with a message, and refused one with a status.
var (
	transferred = record.Reply{
		Header:  md{"x-number": {"7"}, "x-sum-bin": {"\x00\xff", ""}},
		Trailer: md{"x-cost": {"2", "1"}},
		Type:    "bank.Reply",
		Message: []byte("\x08\x07"),
	}
	refused = record.Reply{
		Code: 9, Text: "no funds",
		Details: []record.Detail{{URL: "type.x/E", Value: []byte("\x0a\x00")}, {}},
		Header:  md{}, Trailer: md{"x-cost": {"0"}},
	}
)

func sameDetail(a, b record.Detail) bool { return a.URL == b.URL && bytes.Equal(a.Value, b.Value) }

func sameReply(a, b record.Reply) bool {
	return a.Code == b.Code && a.Type == b.Type && bytes.Equal(a.Message, b.Message) &&
		a.Text == b.Text && slices.EqualFunc(a.Details, b.Details, sameDetail) &&
		sameHeader(a.Header, b.Header) && sameHeader(a.Trailer, b.Trailer)
}

func isNone(p record.Reply) bool {
	return sameReply(p, record.Reply{}) && p.Header == nil && p.Trailer == nil && p.Message == nil && p.Details == nil
}

func TestReplyRoundTrip(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]record.Reply{
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
			Details: []record.Detail{{URL: strings.Repeat("u", 200), Value: make([]byte, 1<<20)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := record.EncodeReply(nil, p)
			got, err := record.DecodeReply(b)
			if err != nil || !sameReply(got, p) || got.Header == nil || got.Trailer == nil {
				t.Errorf("%+v, %v; want %+v", got, err, p)
			}
			if again := record.EncodeReply(nil, got); !bytes.Equal(again, b) {
				t.Error("the reply that was read makes another record")
			}
		})
	}
}

// The bytes of version 1 are in Redis and must stay readable.
func TestWhatIsWrittenOfReplies(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]record.Reply{
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
			if got := record.EncodeReply(nil, p); !bytes.Equal(got, written) {
				t.Fatalf("%x, want %x", got, written)
			}
		}
		if got, err := record.DecodeReply(written); err != nil || !sameReply(got, p) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Fields that do not belong to the kind of reply are not written.
func TestReplyIsAMessageOrAStatus(t *testing.T) {
	t.Parallel()
	both := refused
	both.Type, both.Message = transferred.Type, transferred.Message
	if got, err := record.DecodeReply(record.EncodeReply(nil, both)); err != nil || !sameReply(got, refused) {
		t.Errorf("%+v, %v", got, err)
	}
	both.Code = 0
	got, err := record.DecodeReply(record.EncodeReply(nil, both))
	if err != nil || got.Text != "" || got.Details != nil || got.Type != transferred.Type {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEncodeReplyAppends(t *testing.T) {
	t.Parallel()
	prefix := []byte("before")
	rest, ok := bytes.CutPrefix(record.EncodeReply(prefix, transferred), prefix)
	if !ok || !bytes.Equal(rest, record.EncodeReply(nil, transferred)) {
		t.Errorf("%q", rest)
	}
}

// Appending to the message or to a detail does not change the record.
func TestReplyDoesNotReachIntoTheRecord(t *testing.T) {
	t.Parallel()
	for _, p := range []record.Reply{transferred, refused} {
		b := record.EncodeReply(nil, p)
		got, err := record.DecodeReply(b)
		if err != nil {
			t.Fatal(err)
		}
		_ = append(got.Message, "more"...)
		for _, detail := range got.Details {
			_ = append(detail.Value, "more"...)
		}
		if !bytes.Equal(b, record.EncodeReply(nil, p)) {
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
		"nothing":              {nil, record.ErrDamaged},
		"zeros":                {make([]byte, 64), record.ErrDamaged},
		"another record after": {append(record.EncodeReply(nil, refused), record.EncodeReply(nil, refused)...), record.ErrDamaged},

		"version 2":      {framed(2, 2, "\x00"+empty+"\x01T"), record.ErrVersion},
		"kind 3":         {framed(1, 3, "\x00"+empty+"\x01T"), record.ErrKind},
		"an HTTP answer": {record.Encode(nil, payment), record.ErrKind},

		"no content":                {content(""), record.ErrDamaged},
		"code in a longer form":     {content("\x85\x00" + empty + "\x00"), record.ErrDamaged},
		"code over 32 bits":         {content("\x85\x80\x80\x80\x10" + empty + "\x00"), record.ErrDamaged},
		"no header":                 {content("\x05"), record.ErrDamaged},
		"no trailer":                {content("\x05\x00"), record.ErrDamaged},
		"header out of order":       {content("\x00\x02\x01b\x01\x00\x01a\x01\x00\x00\x01T"), record.ErrDamaged},
		"a name twice":              {content("\x00\x02\x01a\x01\x00\x01a\x01\x00\x00\x01T"), record.ErrDamaged},
		"an upper-case name":        {content("\x00\x01\x01A\x01\x00\x00\x01T"), record.ErrDamaged},
		"an upper-case trailer":     {content("\x00\x00\x01\x01A\x01\x00\x01T"), record.ErrDamaged},
		"a name without a value":    {content("\x00\x01\x01a\x00\x00\x01T"), record.ErrDamaged},
		"a trailer without a value": {content("\x00\x00\x01\x01a\x00\x01T"), record.ErrDamaged},
		"huge number of names":      {content("\x00" + most), record.ErrDamaged},
		"no type":                   {content("\x00" + empty), record.ErrDamaged},
		"an empty type":             {content("\x00" + empty + "\x00"), record.ErrDamaged},
		"an empty type, a message":  {content("\x00" + empty + "\x00m"), record.ErrDamaged},
		"huge type":                 {content("\x00" + empty + most + "T"), record.ErrDamaged},
		"no text":                   {content("\x05" + empty), record.ErrDamaged},
		"text longer than all":      {content("\x05" + empty + "\x02t"), record.ErrDamaged},
		"a detail without a value":  {content("\x05" + empty + "\x00\x01u"), record.ErrDamaged},
		"a detail's URL too long":   {content("\x05" + empty + "\x00\x02u"), record.ErrDamaged},
		"a detail's value too long": {content("\x05" + empty + "\x00\x01u\x02v"), record.ErrDamaged},
		"a detail's value is huge":  {content("\x05" + empty + "\x00\x01u" + most), record.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := record.DecodeReply(test.record)
			if !errors.Is(err, test.want) || !isNone(p) {
				t.Errorf("%+v, %v; want %v", p, err, test.want)
			}
		})
	}
	if _, err := record.Decode(record.EncodeReply(nil, transferred)); !errors.Is(err, record.ErrKind) {
		t.Errorf("a reply is read as an HTTP answer: %v", err)
	}
}

// Each flipped bit and each cut is detected as damage.
func TestDamageOfRepliesIsFound(t *testing.T) {
	t.Parallel()
	for _, written := range []record.Reply{transferred, refused} {
		b := record.EncodeReply(nil, written)
		for i := range 8 * len(b) {
			damaged := bytes.Clone(b)
			damaged[i/8] ^= 1 << (i % 8)
			if p, err := record.DecodeReply(damaged); !errors.Is(err, record.ErrDamaged) {
				t.Errorf("bit %d: %+v, %v", i, p, err)
			}
		}
		for n := range b {
			if p, err := record.DecodeReply(b[:n]); !errors.Is(err, record.ErrDamaged) {
				t.Errorf("cut to %d bytes: %+v, %v", n, p, err)
			}
		}
	}
}
