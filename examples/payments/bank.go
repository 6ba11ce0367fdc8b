package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// The errors of a bank.
var (
	errNoAccount   = errors.New("no such account")
	errSameAccount = errors.New("both accounts are the same")
	errAmount      = errors.New("the amount is not positive")
	errFunds       = errors.New("insufficient funds")
)

// A bank keeps accounts and orders, in memory where yours would use a
// database. Like a database it reads and writes each single value safely. What
// it does between a read and the write that follows is safe only if nobody
// else does the same meanwhile: that is what the locks are for.
type bank struct {
	// clearing is asked between the reads and the writes of each operation. It
	// stands for the slow part of a payment, such as the card network.
	clearing func(ctx context.Context, operation string) error

	mu        sync.Mutex
	balances  map[string]int64
	orders    map[string][]string
	transfers int // how many were made
}

// A receipt is what a bank says of a transfer that it has made. No two of them
// are equal.
type receipt struct {
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Cents  int64     `json:"cents"` // what is left
}

// newBank returns a bank with these accounts and balances, in cents.
func newBank(balances map[string]int64, clearing func(ctx context.Context, operation string) error) *bank {
	return &bank{
		clearing: clearing,
		balances: maps.Clone(balances),
		orders:   make(map[string][]string),
	}
}

// transfer moves money. The caller holds the locks of both accounts for as long
// as ctx lives.
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
	if err := b.clear(ctx, fmt.Sprintf("transfer %s %s", from, to)); err != nil {
		return receipt{}, err
	}
	b.setBalance(from, payer-cents)
	b.setBalance(to, payee+cents)
	return receipt{Number: b.countTransfer(), At: time.Now().UTC(), Cents: payer - cents}, nil
}

// order notes an order of a user, and returns its number. The caller holds the
// lock of the user for as long as ctx lives.
func (b *bank) order(ctx context.Context, user, item string) (number int, err error) {
	orders := b.ordersOf(user)
	if err := b.clear(ctx, fmt.Sprintf("order %s %s", user, item)); err != nil {
		return 0, err
	}
	b.setOrders(user, append(orders, item))
	return len(orders) + 1, nil
}

// clear asks the clearing, and then looks at ctx: if it has ended, the lock is
// lost or the client gone, and nothing may be written any more.
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

// countTransfer counts one more transfer, and returns how many that makes.
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
