package core_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A ticket prints as a digest of its key, also in a struct and by any verb.
func TestTicketDoesNotPrint(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithFencing(true))...)
	const key = "account:4711"
	ticket, err := lock(t, locks, key).Handover(t.Context(), time.Minute)
	noError(t, err)
	text, err := ticket.MarshalText()
	noError(t, err)
	_, encoded, _ := strings.Cut(string(text), ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	noError(t, err)
	secret := raw[:16]
	if !bytes.HasSuffix(raw, []byte(key)) {
		t.Errorf("%q does not end in the key", raw)
	}

	var printed strings.Builder
	unexported := struct {
		ticket core.Ticket
		list   []core.Ticket
	}{ticket, []core.Ticket{ticket}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%p", "%t"} {
		fmt.Fprintf(&printed, verb+verb+verb+verb, ticket, &ticket, unexported, struct{ Exported core.Ticket }{ticket})
	}
	logger := slog.New(slog.NewTextHandler(&printed, nil))
	logger.Info("x", "ticket", ticket, "any", slog.AnyValue(ticket))
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "ticket", ticket)
	for _, leak := range []string{string(text), encoded, key, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%d", secret), string(secret)} {
		if strings.Contains(printed.String(), leak) {
			t.Errorf("%q is in %s", leak, printed.String())
		}
	}
	digest := core.Event{}.Key.String()
	if want := "reqlock.Ticket(" + lock(t, locks, "account:other").String()[len("reqlock.Lease("):]; ticket.String() == want || ticket.GoString() != ticket.String() || strings.Contains(ticket.String(), digest) {
		t.Errorf("%v", ticket)
	}
	if zero := (core.Ticket{}); zero.String() != "reqlock.Ticket()" || !zero.IsZero() {
		t.Error(zero)
	}
}

func TestTicketMarshals(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithFencing(true))...)
	for _, key := range []string{"a", "ключ \x00 \xff", strings.Repeat("x", 4096)} {
		ticket, err := lock(t, locks, key).Handover(t.Context(), time.Minute)
		noError(t, err)
		lease, err := locks.Accept(t.Context(), reencoded(t, ticket))
		noError(t, err)
		if lease.Key() != key {
			t.Errorf("%q, want %q", lease.Key(), key)
		}
		release(t, lease)
	}
	if !reencoded(t, core.Ticket{}).IsZero() {
		t.Error("the zero ticket has become another one")
	}
	good := "reqlock-ticket-1." + base64.RawURLEncoding.EncodeToString(append(make([]byte, 16), 'k'))
	for _, bad := range []string{
		"no ticket", good[1:], strings.Replace(good, "-1.", "-2.", 1), good + "=", good + "!", good[:len(good)-1] + "_",
		"reqlock-ticket-1." + base64.RawURLEncoding.EncodeToString(make([]byte, 16)), "reqlock-ticket-1.",
	} {
		var ticket core.Ticket
		if err := ticket.UnmarshalText([]byte(bad)); err == nil || strings.Contains(err.Error(), bad) || !ticket.IsZero() {
			t.Errorf("%q: %v, %v", bad, ticket, err)
		}
	}
	var ticket core.Ticket
	noError(t, ticket.UnmarshalText([]byte(good)))
	long := "reqlock-ticket-1." + base64.RawURLEncoding.EncodeToString(make([]byte, 16+4097))
	noError(t, json.Unmarshal([]byte(`"`+long+`"`), &ticket))
	wantError(t, errorOf(locks.Accept(t.Context(), ticket)), core.ErrInvalidKey)
}
