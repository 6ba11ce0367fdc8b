package answer

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"net/http"
	"slices"
)

// appendText appends the length of a text and the text.
func appendText[Text string | []byte](dst []byte, text Text) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// appendHeader appends names in ascending order, each with its values.
func appendHeader(dst []byte, h map[string][]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(h)))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		dst = appendText(dst, name)
		dst = binary.AppendUvarint(dst, uint64(len(h[name])))
		for _, value := range h[name] {
			dst = appendText(dst, value)
		}
	}
	return dst
}

// headerLen returns the length of an encoded header, in bytes.
func headerLen(h map[string][]string) int {
	n := numberLen(len(h))
	for name, values := range h {
		n += textLen(name) + numberLen(len(values))
		for _, value := range values {
			n += textLen(value)
		}
	}
	return n
}

// textLen returns the length of an encoded text, in bytes.
func textLen(text string) int { return numberLen(len(text)) + len(text) }

// numberLen returns the length of n as a varint, in bytes.
func numberLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 } //nolint:gosec // as in Encode

// A reader parses a content. If something does not fit, the reader is damaged, and its
// results mean nothing. It allocates no more memory than the bytes that it has read
// justify, for any lengths that they state.
type reader struct {
	rest    []byte
	damaged bool
}

// number reads a varint in its shortest form.
func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || size > 1 && r.rest[size-1] == 0 {
		r.damaged = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// status reads a status that net/http can send as that of an answer.
func (r *reader) status() int {
	n := r.number()
	if n < http.StatusOK || n > 999 {
		r.damaged = true
		return 0
	}
	return int(n)
}

// text reads a text with its length.
func (r *reader) text() string { return string(r.bytes(r.number())) }

// bytes returns the next n bytes of the content, without a copy. To append to them does not
// write into the content.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.damaged = true
	}
	if r.damaged {
		return nil
	}
	bytes := r.rest[:n:n]
	r.rest = r.rest[n:]
	return bytes
}

// header reads names in ascending order, each with its values.
func (r *reader) header() map[string][]string {
	h := map[string][]string{}
	last := ""
	for left := r.number(); left > 0 && !r.damaged; left-- {
		name := r.text()
		if len(h) > 0 && name <= last {
			r.damaged = true
		}
		h[name], last = r.values(), name
	}
	return h
}

// values reads the values of a name.
func (r *reader) values() []string {
	var values []string
	for left := r.number(); left > 0 && !r.damaged; left-- {
		values = append(values, r.text())
	}
	return values
}
