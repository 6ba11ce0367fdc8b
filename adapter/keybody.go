package adapter

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/httpbody"
	"github.com/reqlock/reqlock/internal/keytext"
)

// BodyKey returns a key that reads the body. limit is that of core.WithMaxBody. call and part are
// those of core.Key.Describe. read must be safe for concurrent use.
func BodyKey[R any](call, part string, read func(r R, limit int64) (string, error)) core.Key[R] {
	return keyOf(bridge.Node[R]{
		About: &bridge.About{Text: call, Call: call, Part: part, ReadsBody: true},
		Read: func(env bridge.Env, r R) (bridge.RequestKey, error) {
			raw, err := read(r, env.MaxBody)
			if err == nil && raw == "" {
				err = core.ErrNoKey
			}
			return bridge.RequestKey{Raw: raw}, err
		},
	})
}

// FormKey is nethttplock.Form, which describes it.
func FormKey(name string) core.Key[*http.Request] {
	must(name != "", "Form needs a name")
	call := keytext.Call("Form", name)
	return BodyKey(call, "the form field "+strconv.Quote(name), func(r *http.Request, limit int64) (string, error) {
		return httpbody.Form(r, name, call, limit)
	})
}

// JSONKey is nethttplock.JSONField, which describes it.
func JSONKey(path string) core.Key[*http.Request] {
	names, call := namesOf(path), keytext.Call("JSONField", path)
	return BodyKey(call, "the JSON field "+strconv.Quote(path), func(r *http.Request, limit int64) (string, error) {
		return httpbody.JSON(r, names, call, limit)
	})
}

// FormField returns the field of a form that was read, for a BodyKey of a framework without net/http:
// one that occurs once in the body, and not in the query. A body of another media type has no fields.
// The errors are core.ErrNoKey and core.ErrInvalidKey.
func FormField(contentType, query string, body []byte, name string) (string, error) {
	return httpbody.Field(contentType, query, body, name)
}

// JSONField returns the field of a JSON object that was read. Dots in the path separate the names of
// nested objects. The errors are core.ErrNoKey and core.ErrInvalidKey. It panics for a path with an
// empty name.
func JSONField(body []byte, path string) (string, error) {
	return httpbody.JSONField(body, namesOf(path))
}

// namesOf returns the names of a path. It panics if one is empty.
func namesOf(path string) []string {
	names := strings.Split(path, ".")
	for _, name := range names {
		must(name != "", "JSONField needs a path of names with dots between them")
	}
	return names
}

// ReadBody returns the complete body of a request, and replaces it by a body that yields the same
// bytes. The caller must not change the returned bytes.
//
// A body over the limit, in bytes, or over that of http.MaxBytesReader, is core.ErrBodyTooLarge. An
// incomplete body is core.ErrInvalidKey. If the body was read before, ReadBody returns no bytes.
// After an error, too, the new body reads as the first one would have.
func ReadBody(r *http.Request, limit int64) ([]byte, error) { return httpbody.Read(r, limit) }

// BodyTooLarge returns the core.ErrBodyTooLarge of a body over a limit in bytes, that of
// core.WithMaxBody, for a framework that reads bodies by itself.
func BodyTooLarge(limit int64) error { return httpbody.TooLarge(limit) }

// BodyConsumed returns the error of a body of which nothing is left, because a middleware outside has
// read it, for Accessors.Body and BodyKey of a framework without net/http. Without it, all such requests
// have the same, empty body. reader is what needs the body, as the program calls it, such as
// `JSONField("id")`. The observers get a core.Warned event with it once.
func BodyConsumed(reader string) error { return httpbody.Consumed(reader) }

// CopyForm copies the forms that a handler has parsed in its request to the request from before the
// middleware. Middlewares outside cannot parse them any more, because the body has been read, and
// the server removes the temporary files of its own request only. Existing forms stay, and nothing
// is written if nothing changes.
func CopyForm(from, to *http.Request) { httpbody.CopyForms(from, to) }
