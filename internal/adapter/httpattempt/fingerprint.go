package httpattempt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"mime"
	"net/http"
)

// fingerprintVersion is a part of each fingerprint. After it has changed, a request
// whose first attempt ran before is a mismatch: see TestFingerprintStays.
const fingerprintVersion = "2"

// Fingerprint returns the digest by which a request is told from others with the
// same method, route and key. It is the digest of the path, the query, the media
// type without its parameters, and the body, as they were sent. Requests that mean
// the same, but are written in another way, have other fingerprints. The host does
// not count: a client may send a request again to another name of the service.
//
// Exception: a multipart body is digested part by part, since its boundary is
// another one for each retry: see partsOf.
//
// A form that a middleware outside has parsed stands for the body that was read
// for it. A body that may have been read outside, and of which nothing is left, is
// an error: all requests would look the same. That is every request without a body
// that does not say, by a length of 0, that it has none.
func Fingerprint(r *http.Request, body []byte) ([]byte, error) {
	mediaType, params := mediaTypeOf(r.Header.Get("Content-Type"))
	kind, payload, err := payloadOf(r, body, mediaType, params["boundary"])
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	put(digest, fingerprintVersion)
	put(digest, r.URL.EscapedPath())
	put(digest, r.URL.RawQuery)
	put(digest, mediaType)
	put(digest, kind)
	put(digest, payload)
	return digest.Sum(nil), nil
}

// put digests a text behind its length, so that no two lists of texts are digested
// as the same bytes.
func put[T string | []byte](digest hash.Hash, text T) {
	_, _ = fmt.Fprintf(digest, "%d:", len(text)) // a hash returns no error
	_, _ = digest.Write([]byte(text))
}

// mediaTypeOf returns the type that a Content-Type names, in lower case, and its
// parameters. Without a header the type is empty. A malformed header has no
// parameters, and is its own type as it was sent.
func mediaTypeOf(header string) (mediaType string, params map[string]string) {
	mediaType, params, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return header, nil
	}
	return mediaType, params
}

// payloadOf returns what stands for the body, and which kind of payload that is.
func payloadOf(r *http.Request, body []byte, mediaType, boundary string) (kind string, payload []byte, err error) {
	parts, isMultipart := partsOf(mediaType, boundary, body)
	switch {
	case isMultipart:
		return "parts", parts, nil
	case len(body) > 0:
		return "body", body, nil
	case r.MultipartForm != nil && len(r.MultipartForm.File) > 0:
		return "", nil, errBodyGone // the map of files has lost their order
	case len(r.PostForm) > 0:
		return "form", []byte(r.PostForm.Encode()), nil
	case r.ContentLength != 0:
		return "", nil, errBodyGone // -1 is an unknown length
	}
	return "body", nil, nil
}

var errBodyGone = errors.New("reqlock: Idempotent: a middleware outside has read the body; " +
	"let that one leave it there, or use WithFingerprint")
