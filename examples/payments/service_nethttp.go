package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A nethttpService is the service of a bank on net/http.
type nethttpService struct{ bank *bank }

// newNetHTTPService returns the routes of a bank, with their locks.
//
// A lock comes after every middleware that may refuse the request: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so Idempotent comes before the locks.
func newNetHTTPService(bank *bank, locks *core.Locker) http.Handler {
	s := nethttpService{bank}
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other on all routes.
	payer := nethttplock.PathValue("id").Named("account")
	both := core.All(payer, nethttplock.JSONField("to").Named("account"))
	self := nethttplock.ContextValue(userKey{}).Named("user")
	jobs := nethttplock.Literal("batch").Named("jobs")

	alone := nethttplock.Middleware(locks, both)        // a second request is refused
	inTurn := nethttplock.Middleware(locks, both, wait) // a second request waits
	reads := nethttplock.Middleware(locks, payer.Shared(), wait)
	batch := nethttplock.Middleware(locks, jobs.Permits(3), wait)
	user := nethttplock.Middleware(locks, self, wait)
	once := nethttplock.Idempotent(locks, core.Join(self, nethttplock.IdempotencyKey()), wait)
	paidOut := nethttplock.Middleware(locks, payer, core.WithFencing(true)) // its lease can be handed over

	mux := http.NewServeMux()
	mux.Handle("GET /accounts/{id}/balance", authenticate(reads(http.HandlerFunc(s.showAccount))))
	// A person sends a transfer. A second click is refused.
	mux.Handle("POST /accounts/{id}/transfer", authenticate(alone(http.HandlerFunc(s.transfer))))
	// A batch job sends settlements. Three run at once, and wait for their accounts.
	mux.Handle("POST /accounts/{id}/settle", authenticate(batch(inTurn(http.HandlerFunc(s.transfer)))))
	// A program sends a payment again until it has an answer. A copy gets the first answer.
	mux.Handle("POST /accounts/{id}/payments", authenticate(once(alone(http.HandlerFunc(s.transfer)))))
	// A worker makes a payout, under the same lock. The client has a 202 before.
	mux.Handle("POST /accounts/{id}/payouts", authenticate(once(paidOut(http.HandlerFunc(s.payOut)))))
	mux.Handle("POST /accounts/{id}/orders", authenticate(user(http.HandlerFunc(s.placeOrder))))
	return mux
}

// userKey is the key of the user's name in the context of a request.
type userKey struct{}

// authenticate stores the user of the request for the locks and the handlers, and refuses requests for
// the account of another user. In this example the bearer token and the account are the user's name.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			http.Error(w, "the user is unknown", http.StatusUnauthorized)
			return
		}
		if r.PathValue("id") != user {
			http.Error(w, "the account is not yours", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// transfer runs under the locks of both accounts. The context of the request ends if one of the
// locks is lost, so the handler passes it on.
func (s nethttpService) transfer(w http.ResponseWriter, r *http.Request) {
	var body transfer
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil { // the lock has limited the body to 1 MiB
		reply(w, nil, errInvalid)
		return
	}
	made, err := s.bank.transfer(r.Context(), r.PathValue("id"), body)
	reply(w, made, err)
}

// showAccount shares the lock of the account with other readers.
func (s nethttpService) showAccount(w http.ResponseWriter, r *http.Request) {
	cents, err := s.bank.show(r.Context(), r.PathValue("id"))
	reply(w, map[string]any{"cents": cents}, err)
}

// payOut runs under the lock of the account, and hands it over.
func (s nethttpService) payOut(w http.ResponseWriter, r *http.Request) {
	var body transfer
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		reply(w, nil, errInvalid)
		return
	}
	location, err := s.bank.payOut(r.Context(), r.PathValue("id"), body.Cents)
	if err != nil {
		reply(w, nil, err)
		return
	}
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusAccepted)
}

// placeOrder runs under the lock of the user.
func (s nethttpService) placeOrder(w http.ResponseWriter, r *http.Request) {
	user, _ := r.Context().Value(userKey{}).(string)
	number, err := s.bank.order(r.Context(), user, r.URL.Query().Get("item"))
	reply(w, map[string]any{"number": number}, err)
}

// reply answers with JSON: the body, or an error of the bank.
func reply(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	if err != nil {
		r := refusalOf(err)
		status, body = r.http, map[string]any{"error": r.text}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
