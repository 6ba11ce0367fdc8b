package oteltest

import (
	"slices"
	"strings"
	"testing"
)

// The secrets that the test plants, and two texts that need not be secret. Each is long, so that it is found nowhere by chance.
const (
	lockKey        = "iban-DE02120300000000202051"
	hiddenKey      = "mail-ada.lovelace@example.com"
	hmacSecret     = "hmac-secret-of-32-random-bytes-1"
	requestKey     = "idempotency-9b1deb4d-3b7d-4bad"
	userOfRequest  = "user-ada.lovelace.1815.12.10"
	authorization  = "bearer-eyJhbGciOiJIUzI1NiJ9.e30"
	cookieOfClient = "cookie-of-the-client-7f3a9c2e"
	requestBody    = "body-card=4242424242424242"
	requestMessage = "message-payee-GB33BUKB20201555"
	sealedAnswer   = "sealed-answer-balance-1234567"
	openAnswer     = "open-answer-balance-7654321"
	openHeader     = "open-header-payment-445566"
	cookieOfAnswer = "cookie-of-the-answer-5d41402a"
	onceAnswer     = "once-answer-api-key-sk_live_51"
	sealedStatus   = "sealed-status-message-998877"
	sealKey        = "seal-key-0123456789-abcdefghijkl" // 32 bytes
	redisPassword  = "redis-password-correct-horse"
	panicValue     = "panic-value-with-a-row-of-data"
	malformedKey   = "malformed-passport-C01X00T47"
	reference      = "reference-of-a-trace-4bf92f35"
	operatorReason = "reason-the-charge-is-at-the-bank"
)

// secrets are all secrets, with where docs/security.md says that they are. token is that of a lease, and ticket
// is what is secret of a ticket.
func secrets(token, ticket string) []secret {
	return []secret{
		{"the key of a lock", lockKey, []place{inNames, onWire, inNested}},
		{"the key under HMAC", hiddenKey, nil},
		{"the secret of HMAC", hmacSecret, nil},
		{"the Idempotency-Key", requestKey, nil},
		{"the user that is joined to it", userOfRequest, nil},
		{"the Authorization of a request", authorization, nil},
		{"the cookie of a request", cookieOfClient, nil},
		{"the body of a request", requestBody, nil},
		{"the message of a call", requestMessage, nil},
		{"an answer on a route that seals", sealedAnswer, []place{inAnswers, inNested}},
		{"an answer on a route that does not seal", openAnswer, []place{inAnswers, inValues, onWire}},
		{"a replayed header of that answer", openHeader, []place{inAnswers, inValues, onWire}},
		{"a Set-Cookie of an answer", cookieOfAnswer, []place{inAnswers}},
		{"an answer on a route that stores none", onceAnswer, []place{inAnswers}},
		{"a status of a method that seals", sealedStatus, []place{inAnswers}},
		{"the key of the Sealer", sealKey, nil},
		{"the password of the Redis user", redisPassword, []place{onWire}}, // without TLS
		{"the token of a lease", token, []place{inValues, onWire}},
		{"the secret of a ticket", ticket, nil}, // Redis has its digest
		{"the value of a panic", panicValue, []place{inServer}},
		{"a key that is refused", malformedKey, nil},
		{"the reference of a request", reference, []place{inValues, onWire, inLog, inSpans, inErrors, inPrinted, inNested}},
		{"the reason of an operator", operatorReason, []place{inLog, inPrinted, inNested}},
	}
}

// The secrets pass through a service, with all that happens to requests and leases. Each is searched in all
// that leaves the process. It must be found where it may be, too: otherwise the search is blind.
func TestSecretsStayWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	p := newPlanted(t)
	p.holdAndWait()
	p.repeatRequests()
	p.repeatCalls()
	p.useLeases()
	p.useAttempts()
	p.makeMistakes()
	p.dump(t, p.admin)
	p.endServer()
	p.export()
	all := secrets(p.token, p.ticket)
	if len(all) != 23 {
		t.Errorf("%d secrets", len(all))
	}
	for _, found := range p.findings(all) {
		t.Error(found)
	}

	// The answer that is not sealed is let through. If no page said that, the search would find it.
	i := slices.IndexFunc(all, func(s secret) bool { return s.text == openAnswer })
	all[i].may = []place{inAnswers}
	if found := p.findings(all[i : i+1]); len(found) != 2 || !strings.Contains(found[0], string(inValues)) || !strings.Contains(found[1], string(onWire)) {
		t.Errorf("found only %q", found)
	}
}
