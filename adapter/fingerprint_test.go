package adapter

import (
	"bytes"
	"encoding/hex"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fingerprint is fingerprintOf for a request of net/http.
func fingerprint(r *http.Request, body []byte) ([]byte, error) {
	return fingerprintOf(r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), body, r)
}

// digestOf returns the fingerprint of a request.
func digestOf(t *testing.T, target, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, nil)
	digest, err := fingerprint(r, []byte(body))
	if err != nil || len(digest) != 32 {
		t.Fatalf("%x, %v", digest, err)
	}
	return string(digest)
}

// The fingerprint covers the media type without its parameters. A malformed media type is
// covered as it was sent.
func TestFingerprintMediaType(t *testing.T) {
	t.Parallel()
	ofType := func(contentType string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		digest, err := fingerprint(r, []byte(`[]`))
		if err != nil {
			t.Fatal(err)
		}
		return string(digest)
	}
	seen := map[string]string{}
	for _, same := range [][]string{
		{""},
		{"application/merge-patch+json", "Application/Merge-Patch+JSON", "application/merge-patch+json; charset=utf-8"},
		{"application/json-patch+json", "application/json-patch+json;charset=UTF-8", "application/json-patch+json; charset"},
		{"application/json; a=1; b"},
		{"multipart/form-data; boundary=a", "multipart/form-data; boundary=b", "multipart/form-data"},
		{"json"},
		{"/json"},
		{"json/"},
		{"a/b; c=1; c=2"},
		{"a/b; c=1; c=3"},
		{"a/b"},
	} {
		digest := ofType(same[0])
		if other, known := seen[digest]; known {
			t.Errorf("%q and %q have one fingerprint", other, same[0])
		}
		seen[digest] = same[0]
		for _, contentType := range same[1:] {
			if ofType(contentType) != digest {
				t.Errorf("%q and %q have two fingerprints", same[0], contentType)
			}
		}
	}
}

// A retry at another host name of the service has the same fingerprint.
func TestFingerprintWithoutHost(t *testing.T) {
	t.Parallel()
	if digestOf(t, "http://a.example/payments", "7") != digestOf(t, "https://b.example:8443/payments", "7") {
		t.Error("the host belongs to the fingerprint")
	}
}

// Path, query and body each change the fingerprint.
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
		digest := digestOf(t, request[0], request[1])
		if digest != digestOf(t, request[0], request[1]) {
			t.Errorf("%q has two fingerprints", request)
		}
		what := request[0] + " " + request[1]
		if same, known := seen[digest]; known {
			t.Errorf("%q and %q have one fingerprint", same, what)
		}
		seen[digest] = what
	}
}

// Records of running services contain these fingerprints. If they change, a retry of a
// request that ran before an update is a mismatch.
func TestFingerprintsNeverChange(t *testing.T) {
	t.Parallel()
	const want = "257ba540c60a058deb05a8add9caf23ab5eb01a78869cb063203283f6df666ec"
	if got := digestOf(t, "/payments?currency=EUR", `{"amount":7}`); hex.EncodeToString([]byte(got)) != want {
		t.Errorf("%s, want %s", hex.EncodeToString([]byte(got)), want)
	}
	const wantForm = "de96be6b1dbdb6b204d705fa43be775f92a5bb4f3e7b47075693ebdd840fdeac"
	form := written("b", field("a", "", "", "1"), field("file", "f.txt", "text/plain", "2"))
	if got := multipartDigest(t, "form-data", "b", form); hex.EncodeToString([]byte(got)) != wantForm {
		t.Errorf("a form: %x, want %s", got, wantForm)
	}
}

// A form that an outer middleware has parsed replaces the body. A body that was read before
// is not an empty body.
func TestBodyReadOutsideIsNotEmpty(t *testing.T) {
	t.Parallel()
	form := func(body string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, err := fingerprint(form("a=1&b=2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := fingerprint(form("b=2&a=1"), nil); !bytes.Equal(one, same) {
		t.Error("the same form has two fingerprints")
	}
	if other, _ := fingerprint(form("a=1&b=3"), nil); bytes.Equal(one, other) {
		t.Error("two forms have one fingerprint")
	}
	if _, err := fingerprint(form(""), nil); err != nil {
		t.Errorf("an empty form: %v", err)
	}
}

// A body that an outer middleware has read has no fingerprint, unless the parsed form
// contains all of it. A body without a length may be empty.
func TestConsumedBodyHasNoFingerprint(t *testing.T) {
	t.Parallel()
	encoded := http.Header{"Content-Encoding": {"gzip"}}
	for name, test := range map[string]struct {
		request *http.Request
		refused bool
	}{
		"no body":                         {request: bodyless(t, 0, nil)},
		"no body, with an encoding":       {request: bodyless(t, 0, encoded)},
		"a length":                        {request: bodyless(t, 7, nil), refused: true},
		"a length and an encoding":        {request: bodyless(t, 7, encoded), refused: true},
		"chunks, or HTTP/2 and no length": {request: bodyless(t, -1, nil)},
		"no length, with an encoding":     {request: bodyless(t, -1, encoded)},
		"a multipart form of fields":      {request: upload(t, "")},
		"a multipart form with a file":    {request: upload(t, "content"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if digest, err := fingerprint(test.request, nil); (err != nil) != test.refused || (digest == nil) != test.refused {
				t.Errorf("%x, %v", digest, err)
			}
		})
	}
}

// bodyless returns a request after a middleware has read its body.
func bodyless(t *testing.T, length int64, header http.Header) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.ContentLength = length
	maps.Copy(r.Header, header)
	return r
}

// upload returns a chunked request with a parsed form of a field and, if content is not
// empty, a file.
func upload(t *testing.T, content string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("a", "1")
	if content != "" {
		file, _ := form.CreateFormFile("file", "a.txt")
		_, _ = file.Write([]byte(content))
	}
	_ = form.Close()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.ContentLength = -1
	if err := r.ParseMultipartForm(plenty); err != nil {
		t.Fatal(err)
	}
	return r
}
