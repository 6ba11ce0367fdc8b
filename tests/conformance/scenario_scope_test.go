package conformance

import (
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// scopeScenarios are about which requests a key is the same for.
func scopeScenarios() []testCase {
	return []testCase{
		{"the same key of another user, on another route, by another method", everywhere, scopes},
		{"another name of the service, and tenants that have their names", everywhere, hosts},
		{"delimiters in users and keys", everywhere, delimiters},
		{"braces in a key, and nothing of a key in Redis", everywhere, namesInRedis},
		{"a right that is taken away between the first request and its copy", everywhere, revoked},
		{"GET, HEAD and OPTIONS run each time", everywhere, safeMethods},
		{"methods of the application's choice, in any case", everywhere, ownMethods},
	}
}

func scopes(e *env) {
	s := e.shop(endpoint{})
	all := []sent{
		{}, {user: "grace"}, {path: refundsPath}, {method: http.MethodPatch}, {user: "grace", path: refundsPath},
	}
	var firsts []got
	for i := range all {
		all[i].keys = []string{"scoped"}
		firsts = append(firsts, s.runsWith(http.StatusCreated, all[i]))
	}
	for i := range all {
		s.replays(firsts[i], all[i])
	}
}

// A retry may reach the service by another of its names. Where each tenant has a
// name, it belongs to the key, without its port.
func hosts(e *env) {
	at := func(host string) sent {
		request := payment("hosts")
		request.host = host
		return request
	}
	s := e.shop(endpoint{})
	s.replays(s.runsWith(http.StatusCreated, at("a.example")), at("b.example:8443"))

	tenants := e.shop(endpoint{tenants: true})
	a := tenants.runsWith(http.StatusCreated, at("a.example"))
	b := tenants.runsWith(http.StatusCreated, at("b.example"))
	for _, host := range []string{"a.example", "A.Example", "a.example:443", "a.example.:8443"} {
		tenants.replays(a, at(host))
	}
	tenants.replays(b, at("b.example"))
	tenants.refuses(core.ErrInvalidKey, at("a.example:80:80"))
}

func delimiters(e *env) {
	s := e.shop(endpoint{})
	for _, parts := range [][2]string{{"a", "1:b"}, {"a1", "b"}, {"a", "1b"}, {"a|1", "b"}, {"a", "|1b"}} {
		s.runsWith(http.StatusCreated, sent{user: parts[0], keys: []string{parts[1]}})
	}
}

// What a client chooses cannot reach another slot of a cluster, and is not read
// by chance.
func namesInRedis(e *env) {
	s := e.shop(endpoint{})
	for _, key := range []string{"{secret}", "}secret{", "{}secret", "secret*"} {
		request := sent{user: "{ada}", keys: []string{key}}
		s.replays(s.runsWith(http.StatusCreated, request), request)
	}
	names := e.names(e.Context(), "")
	if len(names) == 0 {
		e.Error("there is no record")
	}
	for _, name := range names {
		if strings.Contains(name, "secret") || strings.Contains(name, "ada") || strings.Count(name, "{") > 1 {
			e.Errorf("Redis has a key %q", name)
		}
	}
}

// What stands outside refuses a copy as it would any request.
func revoked(e *env) {
	allowed := true
	s := e.shop(endpoint{outer: func(w http.ResponseWriter, _ *http.Request) bool {
		if !allowed {
			w.WriteHeader(http.StatusForbidden)
		}
		return allowed
	}})
	first := s.runsWith(http.StatusCreated, payment("revoked"))
	allowed = false
	if answer := s.do(e.Context(), payment("revoked")); answer.status != http.StatusForbidden || answer.body != "" {
		e.Errorf("the copy of one who may not got %+v", answer)
	}
	allowed = true
	s.replays(first, payment("revoked"))
}

func safeMethods(e *env) {
	s := e.shop(endpoint{handler: func(t turn) {
		if t.attempt != nil {
			e.Errorf("a %s is an attempt", t.r.Method)
		}
		t.WriteHeader(http.StatusOK)
	}})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete} {
		for range 2 {
			s.runsWith(http.StatusOK, sent{method: method, keys: []string{"key"}})
			s.runsWith(http.StatusOK, sent{method: method})
		}
	}
}

func ownMethods(e *env) {
	s := e.shop(endpoint{own: ownOptions{methods: []string{"put", "Delete"}}})
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		request := sent{method: method, keys: []string{"key"}}
		s.replays(s.runsWith(http.StatusCreated, request), request)
		s.refuses(core.ErrNoKey, sent{method: method})
	}
	s.runsWith(http.StatusCreated, payment("key"))
	s.runsWith(http.StatusCreated, payment("key"))
}
