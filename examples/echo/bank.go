package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// A bank reads balances and writes them back later. It relies on the locks of its
// routes: no other request may write a balance in between.
type bank struct {
	otherBank func(context.Context) error // a slow call to another bank
	balances  sync.Map                    // of account to int
	nicknames sync.Map                    // of user to string
}

func newBank(slowness time.Duration) *bank {
	b := &bank{otherBank: after(slowness)}
	b.balances.Store("ada", 100)
	b.balances.Store("bob", 100)
	return b
}

// of returns the balance of an account.
func (b *bank) of(account string) (balance int, known bool) {
	value, known := b.balances.Load(account)
	balance, _ = value.(int)
	return balance, known
}

// after returns a call that takes this long, or ends with its context.
func after(slowness time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(slowness):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle calls another bank. It stops if the client disconnects or the lock is lost.
func (b *bank) settle(c echo.Context) error {
	if err := b.otherBank(c.Request().Context()); err != nil {
		return echo.ErrServiceUnavailable
	}
	return nil
}

func (b *bank) withdraw(c echo.Context) error {
	var order struct {
		Amount int `form:"amount"`
	}
	if err := c.Bind(&order); err != nil {
		return err
	}
	if order.Amount <= 0 {
		return echo.NewHTTPError(http.StatusBadRequest, "amount must be a positive number")
	}
	balance, _ := b.of(c.Param("id"))
	if balance < order.Amount {
		return c.JSON(http.StatusPaymentRequired, echo.Map{"balance": balance})
	}
	if err := b.settle(c); err != nil {
		return err
	}
	b.balances.Store(c.Param("id"), balance-order.Amount)
	return c.JSON(http.StatusCreated, echo.Map{"balance": balance - order.Amount})
}

func (b *bank) transfer(c echo.Context) error {
	var order struct {
		To     string `form:"to"`
		Amount int    `form:"amount"`
	}
	if err := c.Bind(&order); err != nil {
		return err
	}
	if order.Amount <= 0 || order.To == userOf(c) {
		return echo.NewHTTPError(http.StatusBadRequest, "a transfer needs a positive amount and another account")
	}
	from, _ := b.of(userOf(c))
	to, known := b.of(order.To)
	if !known || from < order.Amount {
		return c.JSON(http.StatusPaymentRequired, echo.Map{"balance": from})
	}
	if err := b.settle(c); err != nil {
		return err
	}
	b.balances.Store(userOf(c), from-order.Amount)
	b.balances.Store(order.To, to+order.Amount)
	return c.JSON(http.StatusCreated, echo.Map{"balance": from - order.Amount})
}

func (b *bank) balance(c echo.Context) error {
	balance, _ := b.of(userOf(c))
	return c.JSON(http.StatusOK, echo.Map{"balance": balance})
}

func (b *bank) rename(c echo.Context) error {
	b.nicknames.Store(userOf(c), c.FormValue("nickname"))
	return c.NoContent(http.StatusNoContent)
}
