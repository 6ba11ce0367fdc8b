package adapter

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxParts is the maximum number of parts of a body that is digested by parts. It is the
	// limit of net/http for a form, and bounds the cost of a body.
	maxParts = 1000
	// maxBoundary is the length of the longest boundary, in bytes (RFC 2046, 5.1.1).
	maxBoundary = 70
)

// partsOf returns the digest of a multipart body: of the header and the bytes of each part,
// in order. It covers neither the boundary nor the bytes before the first boundary and after
// the last one. A part that is multipart itself is digested as bytes, with its boundary.
//
// It returns false for a body that is not multipart, is malformed, or has more than
// maxParts parts. Such a body is digested as it was sent, so a retry with another boundary
// is a mismatch.
func partsOf(mediaType, boundary string, body []byte) (parts []byte, ok bool) {
	if !strings.HasPrefix(mediaType, "multipart/") || boundary == "" || len(boundary) > maxBoundary {
		return nil, false
	}
	digest := sha256.New()
	reader := multipart.NewReader(io.MultiReader(bytes.NewReader(body), strings.NewReader("\r\n"), cut{}), boundary)
	var content bytes.Buffer
	for range maxParts + 1 {
		// NextPart would decode quoted-printable and delete its header.
		part, err := reader.NextRawPart()
		if err == io.EOF { // the last boundary; a body without a boundary wraps io.EOF
			return digest.Sum(nil), true
		}
		if err != nil || !putHeader(digest, part.Header) {
			return nil, false
		}
		content.Reset()
		if _, err := content.ReadFrom(part); err != nil {
			return nil, false
		}
		put(digest, content.Bytes())
	}
	return nil, false
}

// A cut is the end of a body. multipart.Reader would treat io.EOF in the header of a part
// as the last boundary.
type cut struct{}

// Read returns an error that is not io.EOF.
func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// putHeader digests the header of a part: its media type without parameters, its
// disposition with the name and the file name, and all other fields as they were sent. It
// returns false if there are two types or dispositions.
func putHeader(digest hash.Hash, header textproto.MIMEHeader) bool {
	put(digest, strconv.Itoa(len(header)))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		values := header[name]
		switch name {
		case "Content-Type", "Content-Disposition":
			if len(values) != 1 {
				return false
			}
			values = normalized(name, values[0])
		}
		put(digest, name)
		put(digest, strconv.Itoa(len(values)))
		for _, value := range values {
			put(digest, value)
		}
	}
	return true
}

// normalized returns the parts of a field's value in a fixed order. A malformed disposition
// is returned unchanged.
func normalized(name, value string) []string {
	if name == "Content-Type" {
		mediaType, _ := mediaTypeOf(value)
		return []string{mediaType}
	}
	disposition, params, err := mime.ParseMediaType(value)
	if err != nil {
		return []string{value}
	}
	texts := []string{disposition}
	for _, param := range slices.Sorted(maps.Keys(params)) {
		texts = append(texts, param, params[param])
	}
	return texts
}
