package httpattempt

import (
	"bytes"
	"encoding/hex"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fingerprintOf returns the fingerprint of a request that is not changed before.
func fingerprintOf(t *testing.T, target, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, nil)
	digest, err := Fingerprint(r, []byte(body))
	if err != nil || len(digest) != 32 {
		t.Fatalf("%x, %v", digest, err)
	}
	return string(digest)
}

// Path, query and body make the fingerprint, each by itself.
//
//faults:row 49
func TestFingerprint(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, request := range [][2]string{
		{"/payments", ""},
		{"/payments", "1"},
		{"/payments/", ""},
		{"/payments?", "?"},
		{"/payments?1", ""},
		{"/payments?a=1&b=2", ""},
		{"/payments?b=2&a=1", ""},
		{"/payments%3F1", ""},
		{"/a/b", ""},
		{"/a%2Fb", ""},
		{"/payments", "0:"},
		{"/payments0:", ""},
	} {
		digest := fingerprintOf(t, request[0], request[1])
		if digest != fingerprintOf(t, request[0], request[1]) {
			t.Errorf("%q has two fingerprints", request)
		}
		what := request[0] + " " + request[1]
		if same, known := seen[digest]; known {
			t.Errorf("%q and %q have one fingerprint", same, what)
		}
		seen[digest] = what
	}
}

// The fingerprint that running services have in their records.
func TestFingerprintStays(t *testing.T) {
	t.Parallel()
	const want = "59150a83e632a7219fcc1769f24a9cff9cbce8ffadd7d654ae4c428be0d1dde9"
	if got := fingerprintOf(t, "/payments?currency=EUR", `{"amount":7}`); hex.EncodeToString([]byte(got)) != want {
		t.Errorf("%s, want %s", hex.EncodeToString([]byte(got)), want)
	}
}

// A form that was parsed outside stands for the body, and a body that is gone
// is no empty one.
func TestBodyReadOutside(t *testing.T) {
	t.Parallel()
	form := func(body string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, err := Fingerprint(form("a=1&b=2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := Fingerprint(form("b=2&a=1"), nil); !bytes.Equal(one, same) {
		t.Error("the same form has two fingerprints")
	}
	if other, _ := Fingerprint(form("a=1&b=3"), nil); bytes.Equal(one, other) {
		t.Error("two forms have one fingerprint")
	}
	if _, err := Fingerprint(form(""), nil); err != nil {
		t.Errorf("an empty form: %v", err)
	}
	read := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("read outside"))
	if _, err := Fingerprint(read, nil); err == nil {
		t.Error("a body that is gone has a fingerprint")
	}
	if _, err := Fingerprint(upload(t), nil); err == nil {
		t.Error("an upload that is gone has a fingerprint")
	}
}

// upload returns a request with a file, in pieces, whose form was parsed.
func upload(t *testing.T) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("a", "1")
	file, _ := form.CreateFormFile("file", "a.txt")
	_, _ = file.Write([]byte("content"))
	_ = form.Close()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.ContentLength = -1
	if err := r.ParseMultipartForm(plenty); err != nil {
		t.Fatal(err)
	}
	return r
}
