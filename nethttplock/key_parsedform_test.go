package nethttplock_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
)

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
