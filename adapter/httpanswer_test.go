package adapter

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

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
	_, err := NewHTTPAnswer("ginlock", HTTPAnswer{Status: status, Body: body}, replayed...)
	return err
}
