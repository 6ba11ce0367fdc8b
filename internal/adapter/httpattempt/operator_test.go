package httpattempt

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
)

func TestEndpointKeyOfAClientsRequest(t *testing.T) {
	t.Parallel()
	const gin = adapter.Name("ginlock")
	for _, makeKey := range []func(adapter.Name, string, string, []string) (string, error){EndpointKey, PathEndpointKey} {
		got, err := makeKey(gin, "post", "/payments/:id", []string{"ada", "8e03"})
		if want := core.EndpointKey("POST", "/payments/:id", "3:ada4:8e03"); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, test := range []struct {
		method, route string
		parts         []string
		want          string
	}{
		{"POST", "", []string{"8e03"}, "the route is empty"},
		{"", "/payments", []string{"8e03"}, "the method is empty"},
		{"POST", "POST /payments", []string{"8e03"}, `the route "POST /payments" has a space`},
		{"/payments", "POST", []string{"8e03"}, "is no method"},
		{"POST", "/payments", nil, "no part of the key"},
		{"POST", "/payments", []string{"ada", ""}, "EndpointKey: part 2 of the key is empty"},
		{"POST", "/payments", []string{`"secret`}, "EndpointKey: part 1 of the key: a quoted idempotency key without an end"},
	} {
		got, err := PathEndpointKey(gin, test.method, test.route, test.parts)
		if got != "" || err == nil || !strings.HasPrefix(err.Error(), "reqlock: ginlock: EndpointKey: ") ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestAnswerOfAnOperator(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"location": {"/7"}, "Set-Cookie": {"secret"}, "X-Own": {"own"}, "X-Other": {"other"}, "Connection": {"Location2"},
	}
	body := []byte("paid")
	got, err := encode(http.StatusCreated, header, body, []string{"x-own"})
	if err != nil {
		t.Fatal(err)
	}
	body[0] = 'x'
	kept, err := answer.Decode(got)
	if err != nil || kept.Status != http.StatusCreated || string(kept.Body) != "paid" ||
		len(kept.Header) != 2 || kept.Header.Get("Location") != "/7" || kept.Header.Get("X-Own") != "own" {
		t.Errorf("%+v, %v", kept, err)
	}
	for _, status := range []int{http.StatusOK, http.StatusNoContent, 999} {
		if err := answerError(status, nil); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
	for want, err := range map[string]error{
		"199 is no status of an answer":                   answerError(199, nil),
		"99 is no status of an answer":                    answerError(99, nil),
		"1000 is no status of an answer":                  answerError(1000, nil),
		"an answer with the status 204 has no body":       answerError(204, []byte("x")),
		`the header "Set-Cookie" is never replayed`:       answerError(200, nil, "Set-Cookie"),
		`the header "" is never replayed`:                 answerError(200, nil, "X-Own", ""),
		`the header "Idempotent-Replayed" is never repla`: answerError(200, nil, "Idempotent-Replayed"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "reqlock: ginlock: NewAnswer: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func answerError(status int, body []byte, replayed ...string) error {
	_, err := NewAnswer("ginlock", status, nil, body, replayed)
	return err
}
