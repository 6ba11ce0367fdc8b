package nethttplock_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// If a body was read before, the client gets no refusal that says that it lacks the field. The
// same is not known of a body without a length that nothing has parsed or closed. A body that has
// nothing in it is the client's.
func TestConsumedBodyIsNoMissingField(t *testing.T) {
	t.Parallel()
	const read, missing, mistake = "", "no_key", "key_error"
	const urlencoded, asJSON = "application/x-www-form-urlencoded", "application/json"
	parts, partsType := multipartBody(t)
	field, form := nethttplock.JSONField("from"), nethttplock.Form("from")
	drain := func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	closed := func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose)) }
	var gzipped bytes.Buffer
	_ = gzip.NewWriter(&gzipped).Close()
	decompress := func(r *http.Request) { r.Body, _ = gzip.NewReader(r.Body) }
	parse := func(r *http.Request) { _ = r.ParseMultipartForm(1 << 20) }
	for name, test := range map[string]struct {
		key               nethttplock.Key
		contentType, body string
		before            func(*http.Request)
		want, wantChunked string
	}{
		"read":                          {field, asJSON, `{"from":"a"}`, drain, mistake, missing},
		"read, of a form":               {form, urlencoded, "from=a", drain, mistake, missing},
		"read, of a multipart form":     {form, partsType, parts, drain, mistake, missing},
		"closed":                        {field, asJSON, `{"from":"a"}`, closed, mistake, mistake},
		"parsed as a form":              {field, urlencoded, "from=a", parse, mistake, mistake},
		"parsed as a multipart form":    {field, partsType, parts, parse, mistake, mistake},
		"read as a multipart form":      {form, partsType, parts, func(r *http.Request) { _, _ = r.MultipartReader() }, mistake, mistake},
		"no form, and so not parsed":    {field, asJSON, `{"from":"a"}`, parse, read, read},
		"empty":                         {field, asJSON, "", drain, missing, missing},
		"empty after its decompression": {field, asJSON, gzipped.String(), decompress, missing, missing},
		"parsed, and no field":          {form, urlencoded, "&", parse, missing, missing},
		"parsed, no field, for JSON":    {field, urlencoded, "&", parse, missing, missing},
		"parsed, and malformed":         {field, urlencoded, "a;b", parse, missing, missing},
		"parsed, and no part":           {field, "multipart/form-data; boundary=x", "--x--\r\n", parse, missing, missing},
		"parsed, malformed parts":       {form, partsType, "hello", parse, missing, missing},
		"read, and no form parsed":      {field, asJSON, `{"from":"a"}`, func(r *http.Request) { drain(r); parse(r) }, mistake, missing},
		"parsed, but without the field": {form, urlencoded, "to=a", parse, missing, missing},
		"a key has read it":             {field, asJSON, `{"from":"a"}`, func(r *http.Request) { _, _ = nethttplock.JSONField("to").Read(r) }, read, read},
		"a key has read no key":         {field, asJSON, `{"to":"a"}`, func(r *http.Request) { _, _ = field.Read(r) }, missing, missing},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in chunks"}[chunked], func(t *testing.T) {
				t.Parallel()
				r, _ := request(t.Context(), bytes.NewBufferString(test.body))
				r.Header.Set("Content-Type", test.contentType)
				r.ContentLength = int64(len(test.body))
				want := test.want
				if chunked {
					r.ContentLength, want = -1, test.wantChunked
				}
				test.before(r)
				_, err := test.key.Read(r)
				if refusal, _ := core.RefusalOf(err); refusal.Code != want || want == mistake && refusal.HTTP != http.StatusInternalServerError {
					t.Errorf("%v: %+v, want %q", err, refusal, want)
				}
			})
		}
	}
}

// A server's own body shows that it was read or closed, on each version of HTTP.
func TestConsumedBodyOnAConnection(t *testing.T) {
	t.Parallel()
	decode := func(r *http.Request) { _ = json.NewDecoder(r.Body).Decode(&struct{}{}) }
	for name, before := range map[string]func(*http.Request){
		"decoded":            decode,
		"decoded and closed": func(r *http.Request) { decode(r); _ = r.Body.Close() },
		"read and closed":    func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); _ = r.Body.Close() },
		"closed":             func(r *http.Request) { _ = r.Body.Close() },
	} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprint(name, ", HTTP/", version), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					before(r)
					_, err := nethttplock.JSONField("from").Read(r)
					if refusal, _ := core.RefusalOf(err); refusal.Code != "key_error" || r.ProtoMajor != version {
						t.Errorf("%s: %v", r.Proto, err)
					}
				}))
				server.EnableHTTP2 = version == 2
				server.StartTLS()
				t.Cleanup(server.Close)
				answer, err := server.Client().Post(server.URL, "application/json", strings.NewReader(`{"from":"a"}`)) //nolint:noctx // it ends with the server
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			})
		}
	}
}
