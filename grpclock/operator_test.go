package grpclock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

func TestEndpointKeyOfACall(t *testing.T) {
	t.Parallel()
	const method = "/bank.Bank/Transfer"
	if got, err := grpclock.EndpointKey(method, "ada", `"8e03"`); got != core.EndpointKey("", method, "3:ada4:8e03") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := grpclock.EndpointKey(method, "8e03"); got != core.EndpointKey("", method, "8e03") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{"", "bank.Bank/Transfer", "/bank.Bank", "POST", "/a/b/c"} {
		if got, err := grpclock.EndpointKey(wrong, "8e03"); got != "" || err == nil || !strings.HasPrefix(err.Error(), "reqlock: grpclock: EndpointKey: ") {
			t.Errorf("%q: %q, %v", wrong, got, err)
		}
	}
	if _, err := grpclock.EndpointKey(method, ""); !errors.Is(err, core.ErrNoKey) {
		t.Errorf("%v", err)
	}
	if _, err := grpclock.EndpointKey(method); err == nil {
		t.Error("no part is a key")
	}
}

func TestAnswerNeedsAMessageOrAnError(t *testing.T) {
	t.Parallel()
	if got, err := grpclock.Answer(nil, nil); got != (core.Record{}) || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}
