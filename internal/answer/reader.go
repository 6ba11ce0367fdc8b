package answer

import (
	"encoding/binary"
	"net/http"
)

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
