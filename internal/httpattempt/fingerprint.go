package httpattempt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
)

// fingerprintVersion is a part of each fingerprint. With another one, requests
// that are retried while a service is updated would be a mismatch.
const fingerprintVersion = "1"

// Fingerprint returns the digest by which a request is told from others with the
// same method, route and key: that of its path, its query and its body, as they
// were sent. Requests that mean the same, but are written in another way, have
// other fingerprints.
//
// A form that a middleware outside has parsed stands for the body that was read
// for it. Where the body was read and nothing is left of it, that is an error:
// all requests would look the same.
func Fingerprint(r *http.Request, body []byte) ([]byte, error) {
	payload, err := payloadOf(r, body)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	for _, part := range [...]string{fingerprintVersion, r.URL.EscapedPath(), r.URL.RawQuery} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	fmt.Fprintf(digest, "%d:", len(payload))
	digest.Write(payload)
	return digest.Sum(nil), nil
}

// payloadOf returns the body, or what others have made of it.
func payloadOf(r *http.Request, body []byte) ([]byte, error) {
	switch {
	case len(body) > 0:
		return body, nil
	case r.MultipartForm != nil && len(r.MultipartForm.File) > 0:
		return nil, errBodyGone
	case len(r.PostForm) > 0:
		return []byte(r.PostForm.Encode()), nil
	case (r.ContentLength > 0 || len(r.TransferEncoding) > 0) && r.Header.Get("Content-Encoding") == "":
		return nil, errBodyGone // but what was compressed may be nothing
	}
	return nil, nil
}

var errBodyGone = errors.New("reqlock: Idempotent: a middleware outside has read the body; " +
	"let that one leave it there, or use WithFingerprint")
