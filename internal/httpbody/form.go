package httpbody

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/reqlock/reqlock/internal/keytext"
	"github.com/reqlock/reqlock/internal/kind"
)

// Form returns the field of a form that occurs once, as keytext.Only does. A form is what net/http
// parses: an urlencoded or multipart body of a POST, PUT or PATCH, or a form that another middleware
// has parsed, even if the method was changed since. A field that is also in the query is ambiguous:
// r.FormValue prefers the query to a multipart body, and an urlencoded body to the query. reader is
// the key as the program writes it.
func Form(r *http.Request, name, reader string, limit int64) (string, error) {
	values, err := formValues(r, name, reader, limit)
	if err != nil {
		return "", err
	}
	return onlyInBody(values, r.URL.RawQuery, name)
}

// Field is Form for a body that was read. It has the media type contentType.
func Field(contentType, query string, body []byte, name string) (string, error) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	var values []string
	switch {
	case contentType == "":
	case err != nil:
		return "", errContentType
	case mediaType == urlencoded:
		values, err = urlencodedValues(body, name)
	case mediaType == multipartForm:
		values, err = multipartValues(body, params["boundary"], name)
	}
	if err != nil {
		return "", err
	}
	return onlyInBody(values, query, name)
}

// onlyInBody returns the only value of a field, which may not be in the query.
func onlyInBody(values []string, query, name string) (string, error) {
	given, err := keytext.QueryValues(query, name)
	if err != nil {
		return "", err
	}
	if len(values) > 0 && len(given) > 0 {
		return "", keytext.Invalid("given in the query and in the body")
	}
	return keytext.Only(values)
}

// The media types of a form.
const (
	urlencoded    = "application/x-www-form-urlencoded"
	multipartForm = "multipart/form-data"
)

var errContentType = keytext.Invalid("a malformed Content-Type")

// formValues returns the values of a field of the form.
func formValues(r *http.Request, name, reader string, limit int64) ([]string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil, nil
	}
	contentType, params, err := mime.ParseMediaType(header)
	if err != nil {
		return nil, errContentType
	}
	isMultipart := contentType == multipartForm
	switch { // another middleware may have read the body
	case !isMultipart && contentType != urlencoded:
		return nil, nil
	case isMultipart && r.MultipartForm != nil && r.PostForm == nil && len(r.MultipartForm.Value) == 0: // by r.MultipartReader
		return nil, Consumed(reader)
	case isMultipart && r.MultipartForm != nil:
		return r.MultipartForm.Value[name], nil
	case !isMultipart && r.PostForm != nil:
		return r.PostForm[name], nil
	case r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch:
		return nil, nil
	}
	body, err := ReadFor(r, limit, reader)
	if err != nil {
		return nil, err
	}
	if isMultipart {
		return multipartValues(body, params["boundary"], name)
	}
	return urlencodedValues(body, name)
}

// urlencodedValues returns the values of a field of an urlencoded form.
func urlencodedValues(body []byte, name string) ([]string, error) {
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
		return nil, kind.ErrNoKey
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

// CopyForms copies the forms that were parsed in the inner request to the outer
// request. Outer middlewares cannot parse them any more, because the body has been read.
// The server removes the temporary files of its own request only. Existing forms of the
// outer request stay, and nothing is written if nothing changes.
func CopyForms(inner, outer *http.Request) {
	if outer.Form == nil && inner.Form != nil {
		outer.Form = inner.Form
	}
	if outer.PostForm == nil && inner.PostForm != nil {
		outer.PostForm = inner.PostForm
	}
	if outer.MultipartForm == nil && inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
}
