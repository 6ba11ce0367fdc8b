package httpattempt

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/adapter/registration"
)

const adapter = registration.Adapter("test")

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		settings Settings[int]
		want     string
	}{
		{Settings[int]{Methods: []string{}}, "needs a method"},
		{Settings[int]{Methods: []string{"POST", ""}}, "empty"},
		{Settings[int]{Methods: []string{"GET"}}, "GET"},
		{Settings[int]{Methods: []string{"put", "head"}}, "HEAD"},
		{Settings[int]{Methods: []string{"options"}}, "OPTIONS"},
		{Settings[int]{Methods: []string{"TRACE"}}, "TRACE"},
		{Settings[int]{Methods: []string{"Query"}}, "QUERY"},
		{Settings[int]{OptionalKey: []string{"X-Key", ""}}, "no name"},
		{Settings[int]{MaxBody: -1}, "-1 bytes"},
		{Settings[int]{ReplayedHeaders: []string{"X-Payment", "set-cookie"}}, `"set-cookie"`},
		{Settings[int]{ReplayedHeaders: []string{"not a name"}}, `"not a name"`},
	} {
		err := test.settings.complete(adapter)
		if err == nil || !strings.HasPrefix(err.Error(), "reqlock: test: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v does not name %s", test.settings, err, test.want)
		}
	}
}

func TestDefaultsOfSettings(t *testing.T) {
	t.Parallel()
	var s Settings[int]
	if err := s.complete(adapter); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Methods, []string{"POST", "PATCH"}) || s.MaxBody != 1<<20 || !s.Stored(402) || s.Stored(500) {
		t.Errorf("%+v", s)
	}
}

func TestMethodsMatchInAnyCase(t *testing.T) {
	t.Parallel()
	always := &Endpoint[int]{settings: Settings[int]{Methods: []string{"post", "Purge"}}}
	optional := &Endpoint[int]{settings: Settings[int]{OptionalKey: []string{"Idempotency-Key", "X-Key"}}}
	for _, e := range []*Endpoint[int]{always, optional} {
		if err := e.settings.complete(adapter); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		endpoint *Endpoint[int]
		method   string
		header   string
		want     bool
	}{
		{always, "POST", "", true},
		{always, "post", "", true},
		{always, "PURGE", "", true},
		{always, "PATCH", "Idempotency-Key", false},
		{always, "GET", "Idempotency-Key", false},
		{optional, "POST", "", false},
		{optional, "PATCH", "idempotency-key", true},
		{optional, "patch", "x-key", true},
		{optional, "PUT", "X-Key", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Method = test.method
		if test.header != "" {
			r.Header.Set(test.header, "") // present, and empty
		}
		if got := test.endpoint.covers(r); got != test.want {
			t.Errorf("%s with %q: %v", test.method, test.header, got)
		}
	}
}
