package main

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// The names are those of a request that runs.
func TestKeyPrintsTheNamesOfARequest(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	r := o.run(t, "key", "--method", "post", "--route", "/payments", "ada", "8e03978e", "--json")
	v := lines[keyView](t, r)[0]
	if want := must(core.EndpointKey("POST", "/payments", "ada", "8e03978e"))(t); v.EndpointKey != want {
		t.Errorf("%+v, want %s", v, want)
	}
	must(newLocker(t, rdb).Begin(t.Context(), v.EndpointKey, nil))(t)
	if seen := lines[lockView](t, o.run(t, "show", v.EndpointKey, "--json"))[0]; seen.Digest != v.Digest || seen.Name != v.Name {
		t.Errorf("%+v, and %+v in Redis", v, seen)
	}
	r = operator{}.run(t, "key", "--route=POST /payments", "--prefix=bank:", "x").want(t, exitOK)
	if text := strings.Join(strings.Fields(r.out), " "); !strings.HasPrefix(text, "endpoint_key: ") || !strings.Contains(text, " name in Redis: bank:i:") {
		t.Error(r.out)
	}
	for args, want := range map[string]string{"x": "the route is empty", "--route /payments x": "the method is empty", "--route": "flag needs an argument", "--route=/a/b --prefix={ x": "hash tag", "": "PART is missing"} {
		operator{}.run(t, append([]string{"key"}, strings.Fields(args)...)...).want(t, exitUsage, want)
	}
}

// docs/security.md says how to erase the record of a request.
func TestKeyNamesTheRecordToErase(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	v := lines[keyView](t, o.run(t, "key", "--json", "--method", "POST", "--route", "POST /payments", "ada", "8e03978e"))[0]
	attempt := must(newLocker(t, rdb).Begin(t.Context(), v.EndpointKey, nil))(t)
	if err := attempt.Commit(t.Context(), []byte("an answer")); err != nil {
		t.Fatal(err)
	}
	if n := rdb.Del(t.Context(), "{"+v.Name+"}:r").Val(); n != 1 {
		t.Errorf("deleted %d keys", n)
	}
	if names := rdb.Keys(t.Context(), "*").Val(); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}
