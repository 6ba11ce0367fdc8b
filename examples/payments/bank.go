package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

// The errors of a bank.
var (
	errNoAccount   = errors.New("no such account")
	errSameAccount = errors.New("both accounts are the same")
	errAmount      = errors.New("the amount is not positive")
	errFunds       = errors.New("insufficient funds")
	errBroken      = errors.New("the bank is out of order")
)

// A bank keeps accounts and orders in memory; a real one would use a database. Like a
// database it reads and writes each single value safely. A read and a following write
// are safe only if no other request does the same between them: this is what the
// locks are for.
type bank struct {
	// clearing is called between the reads and the writes of each operation. It
	// stands for the slow part before money moves, such as a check for fraud.
	clearing func(ctx context.Context, operation string) error
	// booked is called after a transfer was made. It stands for what follows, such as a letter.
	booked func() error

	mu        sync.Mutex
	balances  map[string]int64
	orders    map[string][]string
	transfers int // how many were made
}

// A receipt describes a completed transfer. No two receipts are equal.
type receipt struct {
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Cents  int64     `json:"cents"` // the new balance
}

// newBank returns a bank with accounts and their balances in cents.
func newBank(balances map[string]int64, clearing func(ctx context.Context, operation string) error, booked func() error) *bank {
	return &bank{
		clearing: clearing,
		booked:   booked,
		balances: maps.Clone(balances),
		orders:   make(map[string][]string),
	}
}

// transfer moves money. The caller holds the locks of both accounts until ctx ends.
func (b *bank) transfer(ctx context.Context, from, to string, cents int64) (receipt, error) {
	switch {
	case cents <= 0:
		return receipt{}, errAmount
	case from == to:
		return receipt{}, errSameAccount
	}
	payer, err := b.balance(from)
	if err != nil {
		return receipt{}, err
	}
	payee, err := b.balance(to)
	if err != nil {
		return receipt{}, err
	}
	if payer < cents {
		return receipt{}, errFunds
	}
	payment, _ := core.AttemptFromContext(ctx) // nil for a transfer that is no payment: Decide does nothing then
	payment.Decide(core.NoEffect)              // no money has moved: if this fails, the next try may run
	if err := b.clear(ctx, fmt.Sprintf("transfer %s %s", from, to)); err != nil {
		return receipt{}, err
	}
	payment.Decide(core.Undecided) // the money moves now: if this fails, no other try runs
	b.setBalance(from, payer-cents)
	b.setBalance(to, payee+cents)
	made := receipt{Number: b.countTransfer(), At: time.Now().UTC(), Cents: payer - cents}
	return made, b.booked()
}

// order adds an order of a user, and returns its number. The caller holds the lock of
// the user until ctx ends.
func (b *bank) order(ctx context.Context, user, item string) (number int, err error) {
	orders := b.ordersOf(user)
	if err := b.clear(ctx, fmt.Sprintf("order %s %s", user, item)); err != nil {
		return 0, err
	}
	b.setOrders(user, append(orders, item))
	return len(orders) + 1, nil
}

// show returns the balance of an account. The caller holds the lock of the account, beside
// other readers, until ctx ends.
func (b *bank) show(ctx context.Context, account string) (cents int64, err error) {
	if err := b.clear(ctx, "show "+account); err != nil {
		return 0, err
	}
	return b.balance(account)
}

// clear calls the clearing, and then checks ctx. If ctx has ended, the lock is lost
// or the client has disconnected, and nothing may be written.
func (b *bank) clear(ctx context.Context, operation string) error {
	if err := b.clearing(ctx, operation); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (b *bank) balance(account string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cents, ok := b.balances[account]
	if !ok {
		return 0, errNoAccount
	}
	return cents, nil
}

func (b *bank) setBalance(account string, cents int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balances[account] = cents
}

// countTransfer counts a transfer, and returns the new number of transfers.
func (b *bank) countTransfer() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transfers++
	return b.transfers
}

// transfersMade returns how many transfers were made.
func (b *bank) transfersMade() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.transfers
}

func (b *bank) ordersOf(user string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.orders[user])
}

func (b *bank) setOrders(user string, orders []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders[user] = orders
}
