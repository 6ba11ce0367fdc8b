package ginlock

import (
	"bytes"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/nethttplock"
)

// Form reads the key from a field of a form in the body: urlencoded or multipart,
// sent with POST, PUT or PATCH, or parsed by a middleware before the lock, which may
// have changed the method. An uploaded file does not count. A field that occurs more
// than once is core.ErrInvalidKey, and so is a field that is in the query as well: a
// handler may read either one. An empty name panics.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.PostForm and c.ShouldBind as well as from c.Request.Body.
func Form(name string) Key { return of(nethttplock.Form(name)) }

// JSONField reads the key from a field of a JSON object in the body, whatever its
// Content-Type. Dots separate nested fields: JSONField("account.id"). An empty name
// in the path panics.
//
// The field is a string or an integer; "42" and 42 are the same key. A missing field,
// null or "" is core.ErrNoKey, and so is an empty body. Any other type, a number with
// a fraction or an exponent, malformed JSON, and more than one value are
// core.ErrInvalidKey. Names match as in encoding/json, which ignores case: "id" and
// "ID" in one object are two values for one field.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.ShouldBindJSON as well as from c.Request.Body. A middleware
// before the lock that binds the body, to validate it, must keep the body for others:
// it calls c.ShouldBindBodyWithJSON instead of c.ShouldBindJSON. Or the middleware
// stores the bound value with c.Set; GetAs then reads the key from the validated
// value.
func JSONField(path string) Key {
	return adapter.Convert(nethttplock.JSONField(path), func(c *gin.Context) *http.Request {
		if bound, ok := boundBody(c); ok {
			return bound
		}
		return c.Request
	})
}

// boundBody returns a request with the body that c.ShouldBindBodyWith has read and
// keeps in c for later handlers.
func boundBody(c *gin.Context) (*http.Request, bool) {
	kept, _ := c.Get(gin.BodyBytesKey)
	body, _ := kept.([]byte)
	if len(body) == 0 { // as after another middleware has read the body
		return nil, false
	}
	return &http.Request{Body: io.NopCloser(bytes.NewReader(body))}, true
}

// readBody reads the body of a request for its fingerprint.
func readBody(c *gin.Context, limit int64) ([]byte, error) {
	if bound, ok := boundBody(c); ok {
		return adapter.ReadBody(bound, limit)
	}
	return adapter.ReadBody(c.Request, limit)
}
