package core_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
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
		"no ticket", good[1:], strings.Replace(good, "-1.", "-2.", 1), good + "=", good + "!", good + "\n", good[:len(good)-1] + "_",
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

// The id of a process is no secret, and neither is that of a lease that waits for a ticket.
func TestNoTicketIsMadeOfAnID(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, withoutResend(core.WithFencing(true))...)
	held := lock(t, locks, "held")
	ticket, err := lock(t, locks, "waiting").Handover(t.Context(), time.Minute)
	noError(t, err)
	for _, key := range []string{"held", "waiting"} {
		id, number, _ := strings.Cut(rdb.Get(t.Context(), "reqlock:"+key).Val(), ":")
		secret, err := hex.DecodeString(id)
		if err != nil || number != "1" {
			t.Fatalf("%v, lease %s", err, number)
		}
		var made core.Ticket
		noError(t, made.UnmarshalText([]byte("reqlock-ticket-1."+base64.RawURLEncoding.EncodeToString(append(secret, key...)))))
		if _, err := locks.Accept(t.Context(), made); !errors.Is(err, core.ErrChanged) {
			t.Errorf("a ticket made of the id of the lease of %q: %v", key, err)
		}
	}
	got, err := locks.Accept(t.Context(), ticket)
	noError(t, err)
	release(t, got)
	release(t, held)
}

// A text from a job store is a ticket with exactly this text, or an error.
func FuzzTicketTexts(f *testing.F) {
	for _, seed := range []string{
		"", "reqlock-ticket-1.", "reqlock-ticket-1.AAAAAAAAAAAAAAAAAAAAAGs", "reqlock-ticket-2.AAAAAAAAAAAAAAAAAAAAAGs",
		"reqlock-ticket-1.AAAAAAAAAAAAAAAAAAAAAGs=", "reqlock-ticket-1.AAAAAAAAAAAAAAAA\nAAAAAGs", "reqlock-ticket-1.AAAAAAAAAAAAAAAAAAAAAGt",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var ticket core.Ticket
		if err := ticket.UnmarshalText(text); err != nil {
			if !ticket.IsZero() || len(text) > 20 && strings.Contains(err.Error(), string(text)) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if again, err := ticket.MarshalText(); err != nil || !bytes.Equal(again, text) || ticket.IsZero() != (len(text) == 0) {
			t.Errorf("%q has become %q, %v", text, again, err)
		}
		if printed := fmt.Sprint(ticket); len(printed) > 64 {
			t.Errorf("%q prints as %q", text, printed)
		}
	})
}
