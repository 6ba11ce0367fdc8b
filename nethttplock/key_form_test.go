package nethttplock_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// multipartBody returns a form with two fields, a file, and its Content-Type.
func multipartBody(t *testing.T) (body, contentType string) {
	t.Helper()
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for _, field := range [...]struct{ name, value string }{{"to", "b"}, {"from", "a"}, {"both", "a"}, {"twice", "1"}, {"twice", "2"}} {
		if err := w.WriteField(field.name, field.value); err != nil {
			t.Fatal(err)
		}
	}
	file, err := w.CreateFormFile("upload", "from")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(file, strings.Repeat("x", 5000))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String(), w.FormDataContentType()
}

func TestForm(t *testing.T) {
	t.Parallel()
	const urlencoded = "application/x-www-form-urlencoded"
	parts, partsType := multipartBody(t)
	for name, test := range map[string]struct {
		method, contentType, body, field, want string
		wantErr                                error
	}{
		"urlencoded":           {"POST", urlencoded, "from=a%20b&to=c", "from", "a b", nil},
		"with a charset":       {"PUT", urlencoded + "; charset=utf-8", "from=a", "from", "a", nil},
		"missing":              {"POST", urlencoded, "to=c", "from", "", core.ErrNoKey},
		"only in the query":    {"POST", urlencoded, "to=c", "q", "", core.ErrNoKey},
		"in the query too":     {"POST", urlencoded, "both=a", "both", "", core.ErrInvalidKey},
		"repeated":             {"PATCH", urlencoded, "from=a&from=b", "from", "", core.ErrInvalidKey},
		"malformed":            {"POST", urlencoded, "from=a&to=%", "from", "", core.ErrInvalidKey},
		"over the limit":       {"POST", urlencoded, "from=a&x=" + strings.Repeat("x", 10_000), "from", "", core.ErrBodyTooLarge},
		"multipart":            {"POST", partsType, parts, "from", "a", nil},
		"multipart, and query": {"POST", partsType, parts, "both", "", core.ErrInvalidKey},
		"multipart, missing":   {"POST", partsType, parts, "x", "", core.ErrNoKey},
		"multipart, file":      {"POST", partsType, parts, "upload", "", core.ErrNoKey},
		"multipart, repeated":  {"POST", partsType, parts, "twice", "", core.ErrInvalidKey},
		"multipart, cut off":   {"POST", partsType, parts[:len(parts)-30], "from", "", core.ErrInvalidKey},
		"multipart, unbounded": {"POST", "multipart/form-data", parts, "from", "", core.ErrInvalidKey},
		"multipart, empty":     {"POST", partsType, "", "from", "", core.ErrNoKey},
		"no form":              {"POST", "text/plain", "from=a", "from", "", core.ErrNoKey},
		"no type":              {"POST", "", "from=a", "from", "", core.ErrNoKey},
		"malformed type":       {"POST", "application/;", "from=a", "from", "", core.ErrInvalidKey},
		"no form method":       {"DELETE", urlencoded, "from=a", "from", "", core.ErrNoKey},
	} {
		for _, parsed := range []bool{false, true} {
			if parsed && test.wantErr != nil && test.wantErr != core.ErrNoKey { //nolint:errorlint // the table's own value
				continue // net/http accepts more if it reads first
			}
			t.Run(name+map[bool]string{true: ", parsed before"}[parsed], func(t *testing.T) {
				t.Parallel()
				r, _ := request(t.Context(), strings.NewReader(test.body))
				r.Method = test.method
				r.URL.RawQuery = "q=1&both=query"
				if test.contentType != "" {
					r.Header.Set("Content-Type", test.contentType)
				}
				if parsed {
					_ = r.ParseMultipartForm(1 << 20)
				}
				key, err := within(9000, nethttplock.Form(test.field)).Read(r)
				check(t, key.Raw(), err, test.want, test.wantErr)
				if !parsed && (r.Form != nil || r.PostForm != nil || r.MultipartForm != nil) {
					t.Error("the key has parsed the form for the handler")
				}
				if test.want != "" && r.PostFormValue(test.field) != test.want {
					t.Errorf("the handler finds %q", r.PostFormValue(test.field))
				}
			})
		}
	}
}

// A middleware that reads the method from the form parses the form before it changes the
// method. The handler and the lock find the field.
func TestFormOfAnOverriddenMethod(t *testing.T) {
	t.Parallel()
	parts, partsType := multipartBody(t)
	for name, test := range map[string]struct{ contentType, body, field, want string }{
		"urlencoded":           {"application/x-www-form-urlencoded", "from=a", "from", "a"},
		"multipart":            {partsType, parts, "from", "a"},
		"urlencoded, no field": {"application/x-www-form-urlencoded", "to=b", "from", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := request(t.Context(), strings.NewReader(test.body))
			r.Method = http.MethodPost
			r.Header.Set("Content-Type", test.contentType)
			_ = r.FormValue("_method")
			r.Method = http.MethodDelete
			wantErr := error(nil)
			if test.want == "" {
				wantErr = core.ErrNoKey
			}
			key, err := nethttplock.Form(test.field).Read(r)
			check(t, key.Raw(), err, test.want, wantErr)
			if found := r.FormValue(test.field); found != key.Raw() {
				t.Errorf("the handler finds %q", found)
			}
		})
	}
}

// An outer middleware finds the forms that the handler has parsed. The body has been read
// to its end.
func TestCopyParsedForm(t *testing.T) {
	t.Parallel()
	var parts bytes.Buffer
	w := multipart.NewWriter(&parts)
	_ = w.WriteField("amount", "3")
	_ = w.Close()
	for name, test := range map[string]struct{ contentType, body string }{
		"urlencoded": {"application/x-www-form-urlencoded", "amount=3"},
		"multipart":  {w.FormDataContentType(), parts.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?page=1", strings.NewReader(test.body))
			outer.Header.Set("Content-Type", test.contentType)
			inner := outer.WithContext(outer.Context())
			if inner.FormValue("amount") != "3" {
				t.Fatal("the handler does not find the field")
			}
			adapter.CopyForm(inner, outer)
			if outer.FormValue("amount") != "3" || outer.PostFormValue("amount") != "3" || outer.FormValue("page") != "1" {
				t.Errorf("outside: %v, %v", outer.Form, outer.PostForm)
			}
			if outer.MultipartForm != inner.MultipartForm {
				t.Error("outside has another multipart form")
			}
		})
	}
}

// Forms that an outer middleware has parsed or set stay.
func TestCopyParsedFormKeepsTheirs(t *testing.T) {
	t.Parallel()
	theirs, handlers := &http.Request{}, &http.Request{}
	for _, r := range []*http.Request{theirs, handlers} {
		r.Form, r.PostForm, r.MultipartForm = map[string][]string{}, map[string][]string{}, &multipart.Form{}
	}
	handlers.Form.Set("amount", "3")
	handlers.PostForm.Set("amount", "3")
	own := theirs.MultipartForm
	adapter.CopyForm(handlers, theirs)
	if len(theirs.Form) != 0 || len(theirs.PostForm) != 0 || theirs.MultipartForm != own {
		t.Errorf("outside: %v, %v", theirs.Form, theirs.PostForm)
	}
}
