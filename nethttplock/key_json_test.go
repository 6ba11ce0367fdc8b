package nethttplock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestJSONField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, body, want string
		wantErr          error
	}{
		"string":         {"id", `{"id":"a"}`, "a", nil},
		"escaped":        {"id", `{"\u0069d":"\u00e9\/"}`, "é/", nil},
		"integer":        {"id", `{"id":42}`, "42", nil},
		"negative":       {"id", `{"id":-42}`, "-42", nil},
		"zero":           {"id", `{"id":0}`, "0", nil},
		"minus zero":     {"id", `{"id":-0}`, "0", nil},
		"beyond int64":   {"id", `{"id":123456789012345678901234567890}`, "123456789012345678901234567890", nil},
		"nested":         {"a.b.c", `{"a":{"x":[{"b":1}],"b":{"c":"k"}},"z":null}`, "k", nil},
		"after others":   {"id", "\n{\"x\":{\"id\":1}, \"y\":[\"id\",{}], \"id\" : 7 }\n", "7", nil},
		"other case":     {"id", `{"ID":"a"}`, "a", nil},
		"folded":         {"k", `{"\u212a":"kelvin"}`, "kelvin", nil},
		"same elsewhere": {"a.id", `{"id":1,"a":{"id":2},"b":{"id":3}}`, "2", nil},

		"missing":       {"id", `{"x":1}`, "", core.ErrNoKey},
		"empty object":  {"id", `{}`, "", core.ErrNoKey},
		"null":          {"id", `{"id":null}`, "", core.ErrNoKey},
		"empty string":  {"id", `{"id":""}`, "", core.ErrNoKey},
		"parent null":   {"a.id", `{"a":null}`, "", core.ErrNoKey},
		"root null":     {"id", `null`, "", core.ErrNoKey},
		"empty body":    {"id", ``, "", core.ErrNoKey},
		"blank body":    {"id", " \r\n\t", "", core.ErrNoKey},
		"dots in names": {"a.id", `{"a.id":1}`, "", core.ErrNoKey},

		"true":            {"id", `{"id":true}`, "", core.ErrInvalidKey},
		"object":          {"id", `{"id":{}}`, "", core.ErrInvalidKey},
		"array":           {"id", `{"id":["a"]}`, "", core.ErrInvalidKey},
		"fraction":        {"id", `{"id":1.0}`, "", core.ErrInvalidKey},
		"exponent":        {"id", `{"id":1e2}`, "", core.ErrInvalidKey},
		"big exponent":    {"id", `{"id":1E+999999999}`, "", core.ErrInvalidKey},
		"long number":     {"id", `{"id":1` + strings.Repeat("0", 512) + `}`, "", core.ErrInvalidKey},
		"control":         {"id", `{"id":"a\u0000"}`, "", core.ErrInvalidKey},
		"root array":      {"id", `[{"id":1}]`, "", core.ErrInvalidKey},
		"root string":     {"id", `"id"`, "", core.ErrInvalidKey},
		"parent array":    {"a.id", `{"a":[{"id":1}]}`, "", core.ErrInvalidKey},
		"parent string":   {"a.id", `{"a":"x"}`, "", core.ErrInvalidKey},
		"twice":           {"id", `{"id":1,"id":2}`, "", core.ErrInvalidKey},
		"twice, equal":    {"id", `{"id":1,"x":0,"id":1}`, "", core.ErrInvalidKey},
		"twice by case":   {"id", `{"id":1,"Id":2}`, "", core.ErrInvalidKey},
		"twice escaped":   {"id", `{"id":1,"i\u0064":2}`, "", core.ErrInvalidKey},
		"twice, one null": {"id", `{"id":null,"id":2}`, "", core.ErrInvalidKey},
		"parent twice":    {"a.id", `{"a":{"id":1},"A":{}}`, "", core.ErrInvalidKey},
		"trailing":        {"id", `{"id":1} {"id":2}`, "", core.ErrInvalidKey},
		"trailing brace":  {"id", `{"id":1}}`, "", core.ErrInvalidKey},
		"trailing junk":   {"id", `{"id":1}x`, "", core.ErrInvalidKey},
		"cut off":         {"id", `{"id":1`, "", core.ErrInvalidKey},
		"cut off later":   {"id", `{"id":1,"x":[`, "", core.ErrInvalidKey},
		"cut off early":   {"id", `{`, "", core.ErrInvalidKey},
		"comma at end":    {"id", `{"id":1,}`, "", core.ErrInvalidKey},
		"no comma":        {"id", `{"id":1 "x":2}`, "", core.ErrInvalidKey},
		"no colon":        {"id", `{"id" 1}`, "", core.ErrInvalidKey},
		"wrong bracket":   {"id", `{"id":1]`, "", core.ErrInvalidKey},
		"leading zero":    {"id", `{"id":042}`, "", core.ErrInvalidKey},
		"bare name":       {"id", `{id:1}`, "", core.ErrInvalidKey},
		"not JSON":        {"id", `id=1`, "", core.ErrInvalidKey},
		"byte order mark": {"id", "\ufeff" + `{"id":1}`, "", core.ErrInvalidKey},
		"bad elsewhere":   {"id", `{"id":1,"x":{"y":tru}}`, "", core.ErrInvalidKey},
		"bottomless":      {"id", `{"x":` + strings.Repeat("[", 200_000), "", core.ErrInvalidKey},
		"too deep":        {"id", `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `,"id":1}`, "", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := jsonField(t, test.path, test.body)
			check(t, key, err, test.want, test.wantErr)
		})
	}
}

func jsonField(t *testing.T, path, body string) (string, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	key, err := nethttplock.JSONField(path).Read(r)
	return key.Raw(), err
}

// A key is the value that a handler finds if it decodes the body into a struct or, by the
// one matching name, into a map. Without a key they find no value. A body that
// encoding/json refuses has no key.
func FuzzJSONField(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"account":{"id":"a"}}`, `{"account":{"id":-0}}`, `{"ACCOUNT":{"\u0049d":12}}`,
		`{"account":{"id":1,"ID":2}}`, `{"account":{"id":1.5}}`, `{"account":null}`, `{"account":[{}]}`,
		`{"x":[1,{"y":{}}],"account":{"z":"\ud800","id":"\ud800"}}`, `{"account":{"id":1}}}`, `{"account":{"id":1}`,
		`{"account":{"id":"` + "\xff" + `"}} `,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		key, err := jsonField(t, "account.id", body)
		inStruct, inMap, valid := decoded(body)
		switch {
		case err == nil && (!valid || inStruct != key || inMap != key):
			t.Errorf("%q: key %q, but in a struct %q, in a map %q, valid: %v", body, key, inStruct, inMap, valid)
		case errors.Is(err, core.ErrNoKey) && (inStruct != "" || inMap != "" || !valid && strings.TrimSpace(body) != ""):
			t.Errorf("%q: no key, but in a struct %q, in a map %q, valid: %v", body, inStruct, inMap, valid)
		case err != nil && !errors.Is(err, core.ErrNoKey) && !errors.Is(err, core.ErrInvalidKey):
			t.Errorf("%q: %v", body, err)
		}
	})
}

// decoded returns account.id as handlers find it, and whether the body is valid.
func decoded(body string) (inStruct, inMap string, valid bool) {
	var object struct {
		Account struct {
			ID any `json:"id"`
		} `json:"account"`
	}
	_ = decode(body, &object)
	var root any
	valid = decode(body, &root) == nil && json.Valid([]byte(body))
	return text(object.Account.ID), text(folded(folded(root, "account"), "id")), valid
}

func decode(body string, into any) error {
	dec := json.NewDecoder(bytes.NewReader([]byte(body)))
	dec.UseNumber()
	return dec.Decode(into)
}

// folded returns the member whose name matches without regard to case.
func folded(object any, name string) any {
	members, _ := object.(map[string]any)
	for member, value := range members {
		if strings.EqualFold(member, name) {
			return value
		}
	}
	return nil
}

// text returns a string or a number as a key.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		if value == "-0" {
			return "0"
		}
		return value.String()
	default:
		return ""
	}
}
