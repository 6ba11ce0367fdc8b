package answer

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Reply is the answer of a gRPC method: a message if the Code is 0 (OK), and otherwise
// the rest of a status.
type Reply struct {
	Header, Trailer map[string][]string // the replayable metadata: see Metadata

	Code    uint32
	Type    string // the full name of the message's type
	Message []byte
	Text    string // the message of the status
	Details []Detail
}

// A Detail is one of the details of a status, a google.protobuf.Any.
type Detail struct {
	URL   string
	Value []byte
}

// EncodeReply appends the record of a reply to dst. Equal replies have equal records, as in
// Encode. The record of an OK has no Text and no Details. The record of another status has
// no Type and no Message.
//
// A message without a Type, and a name of metadata that Metadata would not return, result
// in a record that DecodeReply refuses.
//
// The content is the code, the header and the trailer, as in an Answer. For OK the type
// follows, and the message is the rest. For another status the text follows, and URLs and
// values of details until the end.
func EncodeReply(dst []byte, p Reply) []byte {
	start := len(dst)
	dst = beginFrame(slices.Grow(dst, replyLen(p)), kindGRPC)
	dst = binary.AppendUvarint(dst, uint64(p.Code))
	dst = appendHeader(dst, p.Header)
	dst = appendHeader(dst, p.Trailer)
	if p.Code == 0 {
		dst = append(appendText(dst, p.Type), p.Message...)
		return endFrame(dst, start)
	}
	dst = appendText(dst, p.Text)
	for _, detail := range p.Details {
		dst = appendText(appendText(dst, detail.URL), detail.Value)
	}
	return endFrame(dst, start)
}

// DecodeReply reads a record that EncodeReply wrote. It returns the complete reply, or
// ErrDamaged, ErrVersion or ErrKind, as Decode does.
//
// The Message and the Value of details share their bytes with b. Header and Trailer are
// never nil.
func DecodeReply(b []byte) (Reply, error) {
	content, err := contentOf(b, kindGRPC)
	if err != nil {
		return Reply{}, err
	}
	r := reader{rest: content}
	p := Reply{Code: r.code(), Header: r.metadata(), Trailer: r.metadata()}
	if p.Code == 0 {
		p.Type = r.text()
		p.Message = r.bytes(uint64(len(r.rest)))
		r.damaged = r.damaged || p.Type == ""
	} else {
		p.Text = r.text()
		for len(r.rest) > 0 && !r.damaged {
			p.Details = append(p.Details, Detail{URL: r.text(), Value: r.bytes(r.number())})
		}
	}
	if r.damaged {
		return Reply{}, ErrDamaged
	}
	return p, nil
}

// replyLen returns the approximate length of a reply's record, in bytes.
func replyLen(p Reply) int {
	n := frameLen + headerLen(p.Header) + headerLen(p.Trailer) + 3*binary.MaxVarintLen32
	n += len(p.Type) + len(p.Message) + len(p.Text)
	for _, detail := range p.Details {
		n += 2*binary.MaxVarintLen16 + len(detail.URL) + len(detail.Value)
	}
	return n
}

// code reads the code of a status.
func (r *reader) code() uint32 {
	n := r.number()
	if n > math.MaxUint32 {
		r.damaged = true
		return 0
	}
	return uint32(n)
}

// metadata reads a header in the form that Metadata returns.
func (r *reader) metadata() map[string][]string {
	h := r.header()
	for name, values := range h {
		if name != strings.ToLower(name) || len(values) == 0 {
			r.damaged = true
		}
	}
	return h
}

// Metadata returns a copy of the replayable metadata that a gRPC handler has set, as a
// header or as a trailer. Names are returned in lower case. Names without a value are left
// out, because gRPC does not send them.
//
// It selects all names except those that are MetadataNeverReplayed. For HTTP it is the
// reverse (Filter): there all middlewares around a handler write into one header with
// registered names, so that the headers of an answer can be listed. For gRPC only the metadata
// that is set inside the interceptor is known, and applications choose its names.
func Metadata(md map[string][]string) map[string][]string {
	kept := map[string][]string{}
	for _, spelling := range slices.Sorted(maps.Keys(md)) { // two spellings of a name have one order
		name := strings.ToLower(spelling)
		if len(md[spelling]) > 0 && !MetadataNeverReplayed(name) {
			kept[name] = append(kept[name], md[spelling]...)
		}
	}
	return kept
}

// MetadataNeverReplayed reports whether metadata of the name is left out: names that are
// NeverReplayed as a header, because gateways convert metadata to headers, and metadata of
// gRPC itself: names that begin with "grpc-" or a colon, the content type and the user
// agent.
func MetadataNeverReplayed(name string) bool {
	switch name = strings.ToLower(name); name {
	case "content-type", "user-agent":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || NeverReplayed(name)
}
