package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// confirm asks a person to type the digest of a key before something that may let two handlers act. Without a
// terminal, only yes is an answer.
func (c *call) confirm(ctx context.Context, what, question, digest string, yes bool) error {
	switch {
	case yes:
		return nil
	case !c.isTerminal(c.in):
		return misuse("%s needs an answer on a terminal, or --yes", what)
	}
	fmt.Fprint(c.problems, question)
	answer, err := typed(ctx, func() (string, error) { return bufio.NewReader(c.in).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(c.problems)
		return err
	case strings.TrimSpace(answer) != digest:
		return errors.New("not confirmed: nothing was done")
	}
	return nil
}

// typed returns what a function reads, or the error of a context that ends before that.
func typed[T any](ctx context.Context, read func() (T, error)) (result T, err error) {
	ended := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(ended)
		got, failed = read()
	}()
	select {
	case <-ended:
		return got, failed
	case <-ctx.Done():
		return result, ctx.Err()
	}
}
