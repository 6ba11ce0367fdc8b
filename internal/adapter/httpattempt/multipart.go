package httpattempt

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
	// maxParts is how many parts a body may have to be digested by them. It is the
	// limit that net/http has for a form, and bounds what a body costs.
	maxParts = 1000
	// maxBoundary is the length of the longest boundary, in bytes (RFC 2046, 5.1.1).
	maxBoundary = 70
)

// partsOf returns the digest of a multipart body: of the header and the bytes of
// each part, in their order. The boundary does not count, and neither does what
// stands before the first and after the last boundary. A part that is multipart
// itself is digested as its bytes, with its own boundary.
//
// It returns false for a body that is not multipart or is malformed, and for one
// with more than maxParts parts. Such a body is digested as it was sent: a retry
// with another boundary is a mismatch.
func partsOf(mediaType, boundary string, body []byte) (parts []byte, ok bool) {
	if !strings.HasPrefix(mediaType, "multipart/") || boundary == "" || len(boundary) > maxBoundary {
		return nil, false
	}
	digest := sha256.New()
	reader := multipart.NewReader(io.MultiReader(bytes.NewReader(body), strings.NewReader("\r\n"), cut{}), boundary)
	var content bytes.Buffer
	for range maxParts + 1 {
		// NextPart would decode quoted-printable, and drop the header that says so.
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

// A cut is the end of a body. A multipart.Reader takes io.EOF in the header of a
// part for the last boundary.
type cut struct{}

// Read returns an error that is not io.EOF.
func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// putHeader digests the header of a part: its type without parameters, its
// disposition with the name and the file name, and all else as it was sent. It
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
			values = meaningOf(name, values[0])
		}
		put(digest, name)
		put(digest, strconv.Itoa(len(values)))
		for _, value := range values {
			put(digest, value)
		}
	}
	return true
}

// meaningOf returns the texts that a header of a part means, in one order. A
// malformed disposition is taken as it was sent.
func meaningOf(name, value string) []string {
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
