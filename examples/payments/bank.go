package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
)

// A refusal is an error of a bank, with its status on HTTP and on gRPC.
type refusal struct {
	text string
	http int
	grpc codes.Code
}

func (r *refusal) Error() string { return r.text }

var (
	errInvalid = &refusal{"the request is not valid", http.StatusBadRequest, codes.InvalidArgument}
	errFunds   = &refusal{"insufficient funds", http.StatusUnprocessableEntity, codes.FailedPrecondition}
	errBroken  = &refusal{"the bank is out of order", http.StatusInternalServerError, codes.Internal}
	errEnded   = &refusal{"nothing was done", http.StatusServiceUnavailable, codes.Unavailable}
)

// refusalOf returns the refusal for an error: errEnded if a context has ended.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return errEnded
}

// A bank keeps accounts and orders in memory. Like a database, it reads and writes each value safely.
// A read and a following write are safe only if no other request writes between them: this is what
// the locks are for.
type bank struct {
	// clearing is called between the reads and the writes of each operation. It stands for the slow
	// part before money moves, such as a check for fraud.
	clearing func(ctx context.Context, operation string) error
	// booked is called after a transfer was made. It stands for what follows, such as a letter.
	booked func() error

	accounts  map[string]*atomic.Int64 // cents
	orders    sync.Map                 // of user to how many orders
	transfers atomic.Int64
	jobs      chan []byte // payouts that a worker makes
}

// A transfer is the body of a request to transfer money.
type transfer struct {
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// A receipt describes a transfer that was made. No two receipts of a bank are equal.
type receipt struct {
	Number int64 `json:"number"`
	Cents  int64 `json:"cents"` // the new balance
}

// transfer moves money. The caller holds the locks of both accounts until ctx ends.
func (b *bank) transfer(ctx context.Context, from string, t transfer) (receipt, error) {
	payer, payee := b.accounts[from], b.accounts[t.To]
	if payer == nil || payee == nil || payer == payee || t.Cents <= 0 {
		return receipt{}, errInvalid
	}
	left, more := payer.Load()-t.Cents, payee.Load()+t.Cents
	if left < 0 {
		return receipt{}, errFunds
	}
	payment, _ := core.AttemptFromContext(ctx) // nil without an Idempotency-Key: Decide does nothing then
	payment.Decide(core.EndNoEffect)           // no money has moved: if this fails, the next try may run
	if err := b.clear(ctx, "transfer "+from+" "+t.To); err != nil {
		return receipt{}, err
	}
	payment.Decide(core.EndUndecided) // the money moves now: if this fails, no other try runs
	payer.Store(left)
	payee.Store(more)
	return receipt{Number: b.transfers.Add(1), Cents: left}, b.booked()
}

// show returns a balance. The caller shares the account's lock with other readers until ctx ends.
func (b *bank) show(ctx context.Context, account string) (cents int64, err error) {
	shown := b.accounts[account]
	if shown == nil {
		return 0, errInvalid
	}
	if err := b.clear(ctx, "show "+account); err != nil {
		return 0, err
	}
	return shown.Load(), nil
}

// order adds an order, and returns its number. The caller holds the user's lock until ctx ends.
func (b *bank) order(ctx context.Context, user, item string) (number int, err error) {
	orders, _ := b.orders.LoadOrStore(user, 0)
	if err := b.clear(ctx, "order "+user+" "+item); err != nil {
		return 0, err
	}
	number = orders.(int) + 1
	b.orders.Store(user, number)
	return number, nil
}

// clear calls the clearing, and then checks ctx. If ctx has ended, the lock is lost or the client has
// disconnected, and nothing may be written.
func (b *bank) clear(ctx context.Context, operation string) error {
	if err := b.clearing(ctx, operation); err != nil {
		return err
	}
	return context.Cause(ctx)
}
