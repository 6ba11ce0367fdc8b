package httpkey

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// Form reads a field that occurs once in the form in the body. A form is what net/http
// parses: an urlencoded or multipart body of a POST, PUT or PATCH, or a form that another
// middleware has parsed, even if the method was changed since. A field that is also in the
// query is ambiguous: r.FormValue prefers the query to a multipart body, and an urlencoded
// body to the query.
//
// request returns the net/http request of a framework's. fault, if not nil, converts an error of
// reading the body, such as that of a limit of the framework.
func Form[R any](name string, request func(R) *http.Request, fault func(error) error) core.Key[R] {
	must(name != "", "Form needs a name")
	call := keytext.Call("Form", name)
	return bodyKey(call, "the form field "+strconv.Quote(name), request, fault, func(r *http.Request, limit int64) (string, error) {
		values, err := formValues(r, name, call, limit)
		if err != nil {
			return "", err
		}
		query, err := queryValues(r, name)
		if err != nil {
			return "", err
		}
		if len(values) > 0 && len(query) > 0 {
			return "", keytext.Invalid("given in the query and in the body")
		}
		return keytext.Only(values)
	})
}

// bodyKey returns the key that read reads from the body of a framework's request.
func bodyKey[R any](
	call, part string, request func(R) *http.Request, fault func(error) error, read func(r *http.Request, limit int64) (string, error),
) core.Key[R] {
	return adapter.BodyKey(call, part, func(r R, limit int64) (string, error) {
		key, err := read(request(r), limit)
		if err != nil && fault != nil {
			err = fault(err)
		}
		return key, err
	})
}

// formValues returns the values of a field of the form. call is the key as the program
// writes it.
func formValues(r *http.Request, name, call string, limit int64) ([]string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil, nil
	}
	contentType, params, err := mime.ParseMediaType(header)
	if err != nil {
		return nil, keytext.Invalid("a malformed Content-Type")
	}
	isMultipart := contentType == "multipart/form-data"
	switch { // another middleware may have read the body
	case !isMultipart && contentType != "application/x-www-form-urlencoded":
		return nil, nil
	case isMultipart && r.MultipartForm != nil && r.PostForm == nil && len(r.MultipartForm.Value) == 0: // by r.MultipartReader
		return nil, Consumed(call)
	case isMultipart && r.MultipartForm != nil:
		return r.MultipartForm.Value[name], nil
	case !isMultipart && r.PostForm != nil:
		return r.PostForm[name], nil
	case r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch:
		return nil, nil
	}
	body, err := bodyForKey(r, limit, call)
	if err != nil {
		return nil, err
	}
	if isMultipart {
		return multipartValues(body, params["boundary"], name)
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, keytext.Invalid("a malformed form")
	}
	return values[name], nil
}

// multipartValues returns the values of a field of a multipart form. Files are skipped,
// with any name.
func multipartValues(body []byte, boundary, name string) (values []string, err error) {
	if boundary == "" {
		return nil, keytext.Invalid("a multipart form without boundary")
	}
	if len(body) == 0 {
		return nil, core.ErrNoKey
	}
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextPart()
		if err == io.EOF { //nolint:errorlint // an incomplete form wraps it
			return values, nil
		}
		if err != nil {
			return nil, keytext.Invalid("a malformed form")
		}
		if part.FormName() != name || part.FileName() != "" {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, keytext.Invalid("a malformed form")
		}
		values = append(values, string(value))
	}
}
