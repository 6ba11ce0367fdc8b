package adapter

import (
	"bytes"
	"mime"
	"mime/multipart"
	"net/textproto"
	"testing"
)

// FuzzMultipart compares two forms of one and two parts. Forms with the same parts have one
// fingerprint with any boundary. All other forms have two.
func FuzzMultipart(f *testing.F) {
	f.Add("a", "", "1", "a", "", "1", "b", "x", "y")
	f.Add("a", "f", "1", "a", "", "1", "b", "boundary", "b")
	f.Add("a", "f", "1\r\n--x--\r\n", "a", "f", "1", "\r\n--x", "x", "y")
	f.Add("a\"", "dir/f", "", "a\\", "f;", "\r\n", "4:name", "x", "xx")
	f.Fuzz(func(t *testing.T, name, file, body, name2, file2, body2, more, boundary, boundary2 string) {
		one, ok1 := formOf(boundary, name, file, body)
		again, ok2 := formOf(boundary2, name, file, body)
		other, ok3 := formOf(boundary2, name2, file2, body2)
		longer, ok4 := formOf(boundary, name, file, body, name2, file2, more)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			t.Skip("not a boundary, or it is in a part")
		}
		digest := multipartDigest(t, "form-data", boundary, one)
		if multipartDigest(t, "form-data", boundary2, again) != digest {
			t.Fatalf("%q with the boundaries %q and %q has two fingerprints", body, boundary, boundary2)
		}
		same := name == name2 && file == file2 && body == body2
		if (multipartDigest(t, "form-data", boundary2, other) == digest) != same {
			t.Fatalf("%q %q %q and %q %q %q: one fingerprint is %v", name, file, body, name2, file2, body2, !same)
		}
		if multipartDigest(t, "form-data", boundary, longer) == digest {
			t.Fatalf("%q and %q have one fingerprint", one, longer)
		}
	})
}

// formOf encodes a form. Each part is a name, a file name and a body. It reports whether a
// reader decodes the same parts.
func formOf(boundary string, texts ...string) (string, bool) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if w.SetBoundary(boundary) != nil {
		return "", false
	}
	for i := 0; i < len(texts); i += 3 {
		disposition := mime.FormatMediaType("form-data", map[string]string{"name": texts[i], "filename": texts[i+1]})
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		if err != nil || disposition == "" || bytes.Contains([]byte(texts[i+2]), []byte("--"+boundary)) {
			return "", false
		}
		_, params, err := mime.ParseMediaType(disposition)
		if err != nil || params["name"] != texts[i] || params["filename"] != texts[i+1] {
			return "", false // mime cannot encode all texts
		}
		_, _ = part.Write([]byte(texts[i+2]))
	}
	_ = w.Close()
	return body.String(), true
}
