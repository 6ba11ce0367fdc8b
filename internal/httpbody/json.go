package httpbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/internal/keytext"
	"github.com/reqlock/reqlock/internal/kind"
)

// JSON returns the field of the JSON object in the body at a path, as JSONField does. reader is the
// key as the program writes it.
func JSON(r *http.Request, path []string, reader string, limit int64) (string, error) {
	body, err := ReadFor(r, limit, reader)
	if err != nil {
		return "", err
	}
	return JSONField(body, path)
}

// JSONField returns the field of a JSON object as a key. The path has the names of nested objects.
func JSONField(text []byte, path []string) (string, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return "", kind.ErrNoKey
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	field, err := jsonField(dec, path)
	if err != nil {
		return "", err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", keytext.Invalid("more than one JSON value")
	}
	switch field := field.(type) {
	case nil:
		return "", kind.ErrNoKey
	case string:
		return keytext.Text(field)
	case json.Number:
		return jsonInteger(field.String())
	default:
		return "", keytext.Invalid("a JSON value that is neither a string nor an integer")
	}
}

// jsonField reads the next JSON value and returns the token at the path in it, or nil if
// there is none. It parses only the objects on the path. All other values are checked and
// skipped.
func jsonField(dec *json.Decoder, path []string) (json.Token, error) {
	if len(path) == 0 {
		return jsonScalar(dec)
	}
	start, err := dec.Token()
	switch {
	case err != nil:
		return nil, errMalformedJSON
	case start == nil:
		return nil, nil
	case start != json.Delim('{'):
		return nil, keytext.Invalid("a JSON value that is not an object")
	}
	var field json.Token
	found := false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, errMalformedJSON
		}
		// encoding/json matches the names of struct fields without regard to case,
		// and the last of them wins.
		if text, _ := name.(string); !strings.EqualFold(text, path[0]) {
			if err := dec.Decode(&skippedValue{}); err != nil {
				return nil, errMalformedJSON
			}
			continue
		}
		if found {
			return nil, keytext.Invalid("a JSON name given twice")
		}
		found = true
		if field, err = jsonField(dec, path[1:]); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, errMalformedJSON
	}
	return field, nil
}

// jsonScalar reads the next JSON value. An object or array is an error.
func jsonScalar(dec *json.Decoder) (json.Token, error) {
	value, err := dec.Token()
	if err != nil {
		return nil, errMalformedJSON
	}
	if _, ok := value.(json.Delim); ok {
		return nil, keytext.Invalid("a JSON object or array")
	}
	return value, nil
}

// jsonInteger returns a JSON number as a key. Each integer has one spelling in JSON, except
// 0.
func jsonInteger(number string) (string, error) {
	if strings.ContainsAny(number, ".eE") {
		return "", keytext.Invalid("a number that is not written as an integer")
	}
	if number == "-0" {
		number = "0"
	}
	return keytext.Text(number)
}

// skippedValue accepts any JSON value and stores nothing.
type skippedValue struct{}

// UnmarshalJSON is called after the value was checked.
func (*skippedValue) UnmarshalJSON([]byte) error { return nil }

var errMalformedJSON = keytext.Invalid("malformed JSON")
