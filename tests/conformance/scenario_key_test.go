package conformance

import (
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// keyScenarios test the forms of idempotency keys.
func keyScenarios() []testCase {
	return []testCase{
		{"a missing key, required", everywhere, func(e *environment) {
			e.serveEndpoint(endpoint{}).refuses(core.ErrNoKey, httpRequest{})
		}},
		{"a missing key, optional: runs each time", everywhere, optionalKey},
		{"an empty key", everywhere, func(e *environment) {
			keysAreRefused(e, core.ErrNoKey, []string{""}, []string{"  "}, []string{`""`})
		}},
		{"a repeated key", everywhere, func(e *environment) {
			keysAreRefused(e, core.ErrInvalidKey, []string{"key-one", "key-two"}, []string{"key-one", "key-one"})
		}},
		{"a malformed key", everywhere, func(e *environment) {
			keysAreRefused(e, core.ErrInvalidKey, []string{"a b"}, []string{"a,b"}, []string{`"open`}, []string{`"a";`}, []string{strings.Repeat("k", 513)})
		}},
		{"a key, quoted and bare, with parameters and without, is one key", everywhere, oneKey},
		{"a key in a header of another name", everywhere, ownHeader},
	}
}

// A request without the header runs without a key. A key that cannot be used is refused, and
// so is a request without its user.
func optionalKey(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{optionalKey: true}})
	s.runsWith(http.StatusCreated, httpRequest{})
	s.runsWith(http.StatusCreated, httpRequest{})
	first := s.runsWith(http.StatusCreated, payment("optional"))
	s.replays(first, payment("optional"))
	s.refuses(core.ErrNoKey, httpRequest{keys: []string{""}})
	s.refuses(core.ErrInvalidKey, httpRequest{keys: []string{"a,b"}})
	noUser := e.serveEndpoint(endpoint{
		own: ownOptions{optionalKey: true},
		key: func(*http.Request) (string, error) { return "", core.ErrNoKey },
	})
	noUser.refuses(core.ErrNoKey, payment("optional"))
}

// keysAreRefused sends header values that are no keys, with the key required and optional.
func keysAreRefused(e *environment, err error, keys ...[]string) {
	e.Helper()
	required, optional := e.serveEndpoint(endpoint{}), e.serveEndpoint(endpoint{own: ownOptions{optionalKey: true}})
	for _, lines := range keys {
		required.refuses(err, httpRequest{keys: lines})
		optional.refuses(err, httpRequest{keys: lines})
	}
}

func oneKey(e *environment) {
	s := e.serveEndpoint(endpoint{})
	first := s.runsWith(http.StatusCreated, keyed("8e03978e-40d5"))
	for _, same := range []string{`"8e03978e-40d5"`, ` 8e03978e-40d5 `, `"8e03978e-40d5";v=1`, `"8e03978e-40d5"; a;b="c"`} {
		s.replays(first, keyed(same))
	}
	s.runsWith(http.StatusCreated, keyed("8E03978E-40D5"))
	s.runsWith(http.StatusCreated, keyed("token/with:more"))
}

func ownHeader(e *environment) {
	s := e.serveEndpoint(endpoint{
		own: ownOptions{optionalKey: true, keyHeaders: []string{"X-Request-Key", "x-other-key"}},
		key: func(r *http.Request) (string, error) { return r.Header.Get("X-Request-Key"), nil },
	})
	given := func(name, key string) httpRequest { return httpRequest{header: http.Header{name: {key}}} }
	s.replays(s.runsWith(http.StatusCreated, given("X-Request-Key", "1")), given("X-Request-Key", "1"))
	s.refuses(core.ErrNoKey, given("X-Other-Key", "1"))
	s.runsWith(http.StatusCreated, payment("in a header that does not count"))
}

// scopeScenarios test which requests share a key.
func scopeScenarios() []testCase {
	return []testCase{
		{"the same key of another user, on another route, by another method", everywhere, scopes},
		{"another host name of the service, and a host name for each tenant", everywhere, hosts},
		{"braces in a key, and nothing of a key in Redis", everywhere, namesInRedis},
		{"GET, HEAD and OPTIONS run each time", everywhere, safeMethods},
		{"methods by an option of the application, in any case", everywhere, ownMethods},
		{"the observer learns once that a PUT is not covered", everywhere, uncoveredMethods},
	}
}

func scopes(e *environment) {
	s := e.serveEndpoint(endpoint{})
	all := []httpRequest{
		{}, {user: "grace"}, {path: refundsPath}, {method: http.MethodPatch}, {user: "grace", path: refundsPath},
	}
	var firsts []httpAnswer
	for i := range all {
		all[i].keys = []string{"scoped"}
		firsts = append(firsts, s.runsWith(http.StatusCreated, all[i]))
	}
	for i := range all {
		s.replays(firsts[i], all[i])
	}
}

// A retry may reach the service by another host name. If each tenant has a host name, the host
// belongs to the key, without its port.
func hosts(e *environment) {
	at := func(host string) httpRequest {
		request := payment("hosts")
		request.host = host
		return request
	}
	s := e.serveEndpoint(endpoint{})
	s.replays(s.runsWith(http.StatusCreated, at("a.example")), at("b.example:8443"))

	tenants := e.serveEndpoint(endpoint{tenants: true})
	a := tenants.runsWith(http.StatusCreated, at("a.example"))
	b := tenants.runsWith(http.StatusCreated, at("b.example"))
	for _, host := range []string{"a.example", "A.Example", "a.example:443", "a.example.:8443"} {
		tenants.replays(a, at(host))
	}
	tenants.replays(b, at("b.example"))
	tenants.refuses(core.ErrInvalidKey, at("a+b.example"))
}

// A client's key cannot select another slot of a cluster, and does not appear in Redis.
func namesInRedis(e *environment) {
	s := e.serveEndpoint(endpoint{})
	for _, key := range []string{"{secret}", "}secret{", "{}secret", "secret*"} {
		request := httpRequest{user: "{ada}", keys: []string{key}}
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

// The observer gets one warning for each method and route, and none for methods that change
// nothing or that the application has chosen.
func uncoveredMethods(e *environment) {
	answer := func(t invocation) { t.WriteHeader(http.StatusOK) }
	s, chosen := e.serveEndpoint(endpoint{handler: answer}), e.serveEndpoint(endpoint{
		handler: answer, own: ownOptions{methods: []string{http.MethodPost}},
	})
	for range 2 {
		for _, path := range []string{paymentsPath, refundsPath} {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
				request := payment("uncovered")
				request.method, request.path = method, path
				s.runsWith(http.StatusOK, request)
				chosen.runsWith(http.StatusOK, request)
			}
		}
	}
	warned, _ := e.events.of(core.Warned)
	var texts []string
	for _, event := range warned {
		texts = append(texts, event.Err.Error())
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{`PUT on the route "` + paymentsPath, `DELETE on the route "` + refundsPath} {
		if strings.Count(all, want) != 1 || len(warned) != 4 || strings.Contains(all, keyPrefix) {
			e.Errorf("%d warnings, of which one should say %q:\n%s", len(warned), want, all)
		}
	}
}

func safeMethods(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		if t.attempt != nil {
			e.Errorf("a %s is an attempt", t.r.Method)
		}
		t.WriteHeader(http.StatusOK)
	}})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete} {
		for range 2 {
			s.runsWith(http.StatusOK, httpRequest{method: method, keys: []string{"key"}})
			s.runsWith(http.StatusOK, httpRequest{method: method})
		}
	}
}

func ownMethods(e *environment) {
	s := e.serveEndpoint(endpoint{own: ownOptions{methods: []string{"put", "Delete"}}})
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		request := httpRequest{method: method, keys: []string{"key"}}
		s.replays(s.runsWith(http.StatusCreated, request), request)
		s.refuses(core.ErrNoKey, httpRequest{method: method})
	}
	s.runsWith(http.StatusCreated, payment("key"))
	s.runsWith(http.StatusCreated, payment("key"))
}
