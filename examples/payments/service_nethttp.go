package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A nethttpService is the service of the bank on net/http.
type nethttpService struct {
	bank *bank

	// The locks of the routes. Locks with the same name and key exclude each other on
	// all routes.
	account func(http.Handler) http.Handler // both accounts of a transfer; the second request is refused
	inTurn  func(http.Handler) http.Handler // the same locks; the second request waits
	user    func(http.Handler) http.Handler // everything that belongs to one user; the second request waits
	reads   func(http.Handler) http.Handler // one account, beside other readers
	batch   func(http.Handler) http.Handler // the batch jobs of the bank; three run at once, and the others wait

	once func(http.Handler) http.Handler // one payment of a user; a copy gets the first answer
}

// newNetHTTPService returns the service of a bank, with its locks.
func newNetHTTPService(bank *bank, locks *core.Locker) *nethttpService {
	payer := core.Named("account", nethttplock.PathValue("id"))
	payee := nethttplock.Also(core.Named("account", nethttplock.JSONField("to", nethttplock.MaxBody(maxBody))))
	self := core.Named("user", nethttplock.ContextValueAs(userKey{}, user.Subject))
	batch := core.Named("jobs", nethttplock.Literal("batch"))

	return &nethttpService{
		bank:    bank,
		account: nethttplock.Middleware(locks, payer, payee),
		inTurn:  nethttplock.Middleware(locks, payer, payee, core.WithWait(10*time.Second)),
		user:    nethttplock.Middleware(locks, self, core.WithWait(10*time.Second)),
		reads:   nethttplock.Middleware(locks, core.Shared(payer), core.WithWait(10*time.Second)),
		batch:   nethttplock.Middleware(locks, core.Permits(3, batch), core.WithWait(10*time.Second)),
		once:    nethttplock.Idempotent(locks, core.Join(self, nethttplock.IdempotencyKey()), core.WithWait(10*time.Second)),
	}
}

// handler returns the routes. The order of the middlewares matters. A lock comes
// after every middleware that may refuse the request: otherwise a client without
// rights could block an account. It comes right before the handler, so that it is
// held no longer than needed.
//
// A person sends a transfer; a second click is refused. A batch job sends a
// settlement, which does the same but waits for the lock, and for one of three
// permits. A program sends a payment, which does the same with an Idempotency-Key, and
// repeats it until it has an answer. A copy of a payment needs no lock of an account, so these locks come after
// Idempotent.
func (s *nethttpService) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /accounts/{id}", chain(s.showAccount, recovered, authenticated, owner, s.reads))
	mux.Handle("POST /accounts/{id}/transfer", chain(s.transfer, recovered, authenticated, owner, s.account))
	mux.Handle("POST /accounts/{id}/settle", chain(s.transfer, recovered, authenticated, owner, s.batch, s.inTurn))
	mux.Handle("POST /accounts/{id}/payments", chain(s.transfer, recovered, authenticated, owner, s.once, s.account))
	mux.Handle("POST /me/orders", chain(s.placeOrder, recovered, authenticated, s.user))
	return mux
}

// showAccount only reads, so it shares the lock with other readers. It waits for a transfer.
func (s *nethttpService) showAccount(w http.ResponseWriter, r *http.Request) {
	cents, err := s.bank.show(r.Context(), r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"cents": cents})
}

// transfer runs under the locks of both accounts. The context of the request ends if
// one of the locks is lost, so the handler passes it on.
func (s *nethttpService) transfer(w http.ResponseWriter, r *http.Request) {
	var body transferBody
	if err := decode(w, r, &body); err != nil {
		refuse(w, err)
		return
	}
	made, err := s.bank.transfer(r.Context(), r.PathValue("id"), body.To, body.Cents)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, made)
}

// placeOrder runs under the lock of the user.
func (s *nethttpService) placeOrder(w http.ResponseWriter, r *http.Request) {
	var body orderBody
	if err := decode(w, r, &body); err != nil {
		refuse(w, err)
		return
	}
	number, err := s.bank.order(r.Context(), userOf(r).ID, body.Item)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusCreated, map[string]any{"number": number})
}

// decode reads a JSON body. The lock of a transfer has read the body before, to find
// the key, and has put it back.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into); err != nil {
		return errBody
	}
	return nil
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// refuse answers a request with an error of the bank.
func refuse(w http.ResponseWriter, err error) {
	reply(w, httpStatusOf(err), map[string]any{"error": err.Error()})
}
