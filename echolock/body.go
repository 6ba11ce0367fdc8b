package echolock

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// Form reads the key from a field of a form in the body: urlencoded or multipart,
// sent with POST, PUT or PATCH, or parsed by a middleware before the lock, which may
// have changed the method. An uploaded file does not count. A field that occurs more
// than once is core.ErrInvalidKey, and so is a field that is in the query as well: a
// handler may read either one. An empty name panics.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.FormValue and c.Bind as well as from c.Request().Body.
func Form(name string) Key { return adapter.ConvertError(of(nethttplock.Form(name)), bodyFault) }

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
// the whole body, with c.Bind as well as from c.Request().Body. If a middleware
// before the lock binds the body, to validate it, the body is consumed, and the
// request gets 500: let the middleware store the bound value with c.Set, and read the
// key with GetAs.
func JSONField(path string) Key {
	return adapter.ConvertError(of(nethttplock.JSONField(path)), bodyFault)
}

// readBody reads the body of a request for its fingerprint.
func readBody(c echo.Context, limit int64) ([]byte, error) {
	body, err := adapter.ReadBody(c.Request(), limit)
	return body, bodyFault(err)
}

// bodyFault translates the error of Echo's BodyLimit to core.ErrBodyTooLarge.
func bodyFault(err error) error {
	var limit *echo.HTTPError
	if errors.As(err, &limit) && limit.Code == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%w: %w", core.ErrBodyTooLarge, limit)
	}
	return err
}
