package adapter

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"mime"
	"net/http"

	"github.com/reqlock/reqlock/internal/httpbody"
)

// fingerprintVersion is a part of each fingerprint. After a change of it, a retry of a
// request that ran before the change is a mismatch: see TestFingerprintsNeverChange.
const fingerprintVersion = "2"

// fingerprintOf returns a digest of a request, which differs between requests with the same
// method, route and key. It covers the path, the query, the media type without its
// parameters, and the body, as they were sent. Two spellings of one request have two
// fingerprints. The host is not covered: a client may retry a request at another host name
// of the service.
//
// Exception: the parts of a multipart body are digested, because each retry has another
// boundary: see partsOf.
//
// A form that an outer middleware has parsed replaces the body that was read for it. If an
// outer middleware has read the body and nothing of it is left, the error is errBodyConsumed:
// all such requests would have one fingerprint. r is nil for a framework without net/http.
func fingerprintOf(path, query, contentType string, body []byte, r *http.Request) ([]byte, error) {
	mediaType, params := mediaTypeOf(contentType)
	kind, payload, err := payloadOf(r, body, mediaType, params["boundary"])
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	put(digest, fingerprintVersion)
	put(digest, path)
	put(digest, query)
	put(digest, mediaType)
	put(digest, kind)
	put(digest, payload)
	return digest.Sum(nil), nil
}

// put digests the length of a text and the text. So two different lists of texts never give
// the same bytes.
func put[T string | []byte](digest hash.Hash, text T) {
	_, _ = fmt.Fprintf(digest, "%d:", len(text)) // a hash returns no error
	_, _ = digest.Write([]byte(text))
}

// mediaTypeOf returns the media type of a Content-Type in lower case, and its parameters.
// Without a header the type is empty. A malformed header is returned unchanged as the type,
// without parameters.
func mediaTypeOf(header string) (mediaType string, params map[string]string) {
	mediaType, params, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return header, nil
	}
	return mediaType, params
}

// payloadOf returns the bytes that represent the body, and their kind.
func payloadOf(r *http.Request, body []byte, mediaType, boundary string) (kind string, payload []byte, err error) {
	parts, isMultipart := partsOf(mediaType, boundary, body)
	switch {
	case isMultipart:
		return "parts", parts, nil
	case len(body) > 0, r == nil:
		return "body", body, nil
	case r.MultipartForm != nil && len(r.MultipartForm.File) > 0:
		return "", nil, errBodyConsumed // the map of files has no order
	case len(r.PostForm) > 0:
		return "form", []byte(r.PostForm.Encode()), nil
	case httpbody.IsConsumed(r):
		return "", nil, errBodyConsumed
	}
	return "body", nil, nil
}

var errBodyConsumed = fmt.Errorf("reqlock: Idempotent: %w", httpbody.Consumed("Idempotent"))
