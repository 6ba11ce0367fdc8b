package adapter

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A testPart is a part of a multipart body.
type testPart struct{ header, body string }

// field returns a part with a name, and a file name and a type unless they are empty.
func field(name, file, mediaType, body string) testPart {
	header := fmt.Sprintf("Content-Disposition: form-data; name=%q", name)
	if file != "" {
		header += fmt.Sprintf("; filename=%q", file)
	}
	if mediaType != "" {
		header += "\r\nContent-Type: " + mediaType
	}
	return testPart{header, body}
}

// written returns the parts between boundaries.
func written(boundary string, parts ...testPart) string {
	var body strings.Builder
	for _, p := range parts {
		header := p.header
		if header != "" {
			header += "\r\n"
		}
		fmt.Fprintf(&body, "--%s\r\n%s\r\n%s\r\n", boundary, header, p.body)
	}
	return body.String() + "--" + boundary + "--\r\n"
}

// multipartDigest returns the fingerprint of a multipart body.
func multipartDigest(t testing.TB, kind, boundary, body string) string {
	t.Helper()
	return digestOfType(t, fmt.Sprintf("multipart/%s; boundary=%q", kind, boundary), body)
}

// digestOfType returns the fingerprint of a body with a Content-Type.
func digestOfType(t testing.TB, contentType, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", contentType)
	digest, err := fingerprint(r, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return string(digest)
}

// Each list of parts has one fingerprint with any boundary, and no two lists have the same.
func TestMultipart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, parts := range map[string][]testPart{
		"no part":           nil,
		"one field":         {field("a", "", "", "1")},
		"another name":      {field("b", "", "", "1")},
		"another value":     {field("a", "", "", "2")},
		"an empty value":    {field("a", "", "", "")},
		"a file":            {field("a", "1", "", "1")},
		"another file name": {field("a", "2", "", "1")},
		"another directory": {field("a", "dir/1", "", "1")},
		"a type":            {field("a", "1", "text/plain", "1")},
		"another type":      {field("a", "1", "text/csv", "1")},
		"another encoding":  {{field("a", "1", "", "1").header + "\r\nContent-Transfer-Encoding: base64", "1"}},
		"quoted-printable":  {{field("a", "1", "", "=31").header + "\r\nContent-Transfer-Encoding: quoted-printable", "=31"}},
		"decoded":           {{field("a", "1", "", "1").header + "\r\nContent-Transfer-Encoding: quoted-printable", "1"}},
		"another header":    {{field("a", "", "", "1").header + "\r\nContent-Id: 1", "1"}},
		"no name":           {{"Content-Disposition: form-data", "1"}},
		"an attachment":     {{"Content-Disposition: attachment; name=a", "1"}},
		"no disposition":    {{"Content-Type: text/plain", "1"}},
		"a malformed one":   {{"Content-Disposition: form-data; name", "1"}},
		"two fields":        {field("a", "", "", "1"), field("b", "", "", "2")},
		"two, reversed":     {field("b", "", "", "2"), field("a", "", "", "1")},
		"two, the same":     {field("a", "", "", "1"), field("a", "", "", "1")},
		"two in one":        {field("a", "", "", "1\r\n\r\n"+field("b", "", "", "").header+"\r\n\r\n2")},
		"three headers":     {{"A: x\r\nA: B\r\nA: y\r\nC: z", "1"}},
		"as many of others": {{"A: x\r\nB: y\r\nB: C\r\nB: z", "1"}},
		"one header":        {{"A: v", "1"}},
		"no headers":        {{body: "A"}, {body: "1"}, {body: "v"}, {body: "1"}},
		"a nested one":      {{"Content-Type: multipart/mixed; boundary=in", written("in", field("a", "", "", "1"))}},
	} {
		digest := multipartDigest(t, "form-data", "first", written("first", parts...))
		if other, known := seen[digest]; known {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[digest] = name
		for _, boundary := range []string{"second", "-", "----WebKitFormBoundary7MA4YWxkTrZu0gW", strings.Repeat("b", 70)} {
			if multipartDigest(t, "form-data", boundary, written(boundary, parts...)) != digest {
				t.Errorf("%s has another fingerprint with the boundary %q", name, boundary)
			}
		}
		if multipartDigest(t, "form-data", "first", "preamble\r\n"+strings.TrimSpace(written("first", parts...))) != digest {
			t.Errorf("%s has another fingerprint with a preamble and without the last line's end", name)
		}
		if multipartDigest(t, "mixed", "first", written("first", parts...)) == digest {
			t.Errorf("%s has one fingerprint as form-data and as mixed", name)
		}
	}
}

// Other spellings of a part's name and type do not change the fingerprint.
func TestMultipartSpelling(t *testing.T) {
	t.Parallel()
	digest := multipartDigest(t, "form-data", "b", written("b", field("a", "f", "text/plain", "1")))
	for _, header := range []string{
		"content-type: Text/Plain; charset=utf-8\r\ncontent-disposition: Form-Data; filename=f; name=a",
		"Content-Disposition:form-data;name=a;\r\n filename=\"f\"\r\nContent-Type:  text/plain",
	} {
		if multipartDigest(t, "form-data", "b", written("b", testPart{header, "1"})) != digest {
			t.Errorf("%q has another fingerprint", header)
		}
	}
}

// A multipart body that is malformed, or has more parts than a form may have, is digested
// as it was sent.
func TestMultipartAsSent(t *testing.T) {
	t.Parallel()
	one := field("a", "", "", "1")
	for name, form := range map[string]func(boundary string) (string, string){
		"no boundary in the body": func(b string) (string, string) { return b, "text" },
		"no boundary at the end": func(b string) (string, string) {
			return b, strings.TrimSuffix(written(b, one), "--"+b+"--\r\n")
		},
		"no part":       func(b string) (string, string) { return b, "--" + b },
		"half a header": func(b string) (string, string) { return b, "--" + b + "\r\n" + one.header },
		"a header":      func(b string) (string, string) { return b, "--" + b + "\r\n" + one.header + "\r\n\r\n" },
		"half a second header": func(b string) (string, string) {
			return b, strings.TrimSuffix(written(b, one), "--\r\n") + "\r\n" + one.header
		},
		"a malformed header": func(b string) (string, string) { return b, written(b, testPart{"no header", "1"}) },
		"two dispositions": func(b string) (string, string) {
			return b, written(b, testPart{one.header + "\r\n" + field("b", "", "", "").header, "1"})
		},
		"two types": func(b string) (string, string) {
			return b, written(b, testPart{"Content-Type: a/b\r\nContent-Type: a/c", "1"})
		},
		"1001 parts": func(b string) (string, string) {
			return b, written(b, repeated(one, 1001)...)
		},
		"an empty boundary": func(string) (string, string) { return "", written("", one) },
		"a boundary of 71 bytes": func(b string) (string, string) {
			b += strings.Repeat("b", 71-len(b))
			return b, written(b, one)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			boundary, body := form("x")
			for _, other := range []string{body + "\r\n", body[:len(body)-1] + "!"} {
				if multipartDigest(t, "form-data", boundary, body) == multipartDigest(t, "form-data", boundary, other) {
					t.Errorf("%q has the same fingerprint", other)
				}
			}
		})
	}
	notMultipart := func(body string) string { return digestOfType(t, "text/plain; boundary=b", body) }
	if body := written("b", one); notMultipart(body) == notMultipart(body+"\r\n") {
		t.Error("a body that is not multipart is digested by parts")
	}
	if body := written("b", repeated(one, 1000)...); multipartDigest(t, "form-data", "b", body) !=
		multipartDigest(t, "form-data", "c", written("c", repeated(one, 1000)...)) {
		t.Error("1000 parts are digested as they were sent")
	}
}

// repeated returns n copies of a part.
func repeated(p testPart, n int) (parts []testPart) {
	for range n {
		parts = append(parts, p)
	}
	return parts
}

// A form of fields that an outer middleware has parsed differs from a body.
func TestParsedFormIsNoBody(t *testing.T) {
	t.Parallel()
	parsed, err := fingerprint(upload(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	asSent := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	asSent.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	if other, _ := fingerprint(asSent, []byte("a=1")); bytes.Equal(parsed, other) {
		t.Error("one fingerprint")
	}
}
