package keytext

import (
	"regexp"
	"strings"

	"github.com/reqlock/reqlock/internal/kind"
)

// IdempotencyKey returns the key of an Idempotency-Key field, given all its lines
// (draft-ietf-httpapi-idempotency-key-header-07, an expired draft). The field has two forms. The same key in
// both forms is the same key:
//
//	Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324"
//	Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324
//
// The first form is the draft's: a quoted string of RFC 9651, of printable ASCII, with \"
// and \\ for a quote and a backslash. Parameters after it are checked and ignored, because
// the draft gives them no meaning.
//
// The second form is what many clients send. It is taken unchanged, without escapes or
// parameters, and consists of visible ASCII except " , ; and \. These characters could mean
// a quoted string without its beginning, two keys that a proxy has joined, a parameter, or
// an escape. So a value that begins with a quote is the first form or malformed, and a key
// with a space needs the first form.
//
// No line, or an empty text in either form, is kind.ErrNoKey. These are kind.ErrInvalidKey:
// several lines, even if all are equal; a key over MaxLen bytes (between the quotes,
// without escapes); and a malformed field.
func IdempotencyKey(lines []string) (string, error) {
	switch len(lines) {
	case 0:
		return "", kind.ErrNoKey
	case 1:
	default:
		return "", Invalid("given %d times", len(lines))
	}
	field := strings.Trim(lines[0], " \t")
	if strings.HasPrefix(field, `"`) {
		return quotedKey(field)
	}
	return bareKey(field)
}

// bareKey reads a key without quotes.
func bareKey(field string) (string, error) {
	for _, c := range []byte(field) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == ',' || c == ';' || c == '\\' {
			return "", Invalid("a character that an idempotency key without quotes cannot have")
		}
	}
	return Text(field)
}

// quotedKey reads a quoted string, with parameters or without.
func quotedKey(field string) (string, error) {
	var key []byte
	for i := 1; i < len(field); i++ {
		c := field[i]
		switch {
		case c == '"':
			if !parameters.MatchString(field[i+1:]) {
				return "", Invalid("what follows the quoted idempotency key is no parameter")
			}
			return Text(string(key))
		case c == '\\':
			i++
			if i == len(field) || field[i] != '"' && field[i] != '\\' {
				return "", Invalid("an escape in an idempotency key that is neither of a quote nor of a backslash")
			}
			c = field[i]
		case c < ' ' || c >= 0x7f:
			return "", Invalid("a character that an idempotency key cannot have")
		}
		key = append(key, c)
	}
	return "", Invalid("a quoted idempotency key without an end")
}

// parameters matches the parameters of an item of RFC 9651 (section 3.1.2), up to its end.
var parameters = regexp.MustCompile(`^(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:` +
	`-?[0-9]{1,15}|-?[0-9]{1,12}\.[0-9]{1,3}` + // an integer, a decimal
	`|"(?:[ !#-\[\]-~]|\\["\\])*"` + // a string
	"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*" + // a token
	`|:[A-Za-z0-9+/=]*:` + // bytes
	`|\?[01]` + // a boolean
	`|@-?[0-9]{1,15}` + // a date
	`|%"(?:[ !#$&-~]|%[0-9a-f]{2})*"` + // a display string
	`))?)*$`)
