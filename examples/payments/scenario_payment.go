package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// oneCharge sends one payment nine times at once, and then nine times more. All have
// the same idempotency key. The payment that runs does so until the other eight wait
// for its answer.
func oneCharge(ctx context.Context, r *testedService) (outcome, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	send := func() {
		for range nine {
			group.send(1, func() (answer, error) { return r.Client.pay(ctx, key, "alice", "bob", 100) })
		}
	}
	send()
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	replayedAtOnce := group.wait().Replayed
	send()
	got := payments{Answers: group.wait(), Charges: r.Bank.transfersMade() - before}
	got.Replayed = [2]int{replayedAtOnce, got.Answers.Replayed - replayedAtOnce}
	return outcome{
		Happened: got.String(),
		Right: got.Charges == 1 && got.Replayed == [2]int{nine - 1, nine} &&
			got.Answers.Done == 2*nine && len(got.Answers.Contents) == 1,
	}, err
}

// hangsUp sends a payment whose client gives up while the payment runs, and then asks again. The
// payment goes on, and is made once.
func hangsUp(ctx context.Context, r *testedService) (outcome, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Monitor.reset()
	defer open()
	patient, hangUp := context.WithCancel(ctx)
	defer hangUp()
	left := make(chan error, 1)
	go func() {
		_, err := r.Client.pay(patient, key, "alice", "bob", 100)
		left <- err
	}()
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside > 0 })
	hangUp()
	if gaveUp := <-left; err == nil && gaveUp == nil {
		return outcome{Happened: "the client did not give up"}, nil
	}
	group := newClientGroup(r.Monitor)
	group.send(1, func() (answer, error) { return r.Client.pay(ctx, key, "alice", "bob", 100) })
	if err == nil {
		err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Waiting+now.Answered > 0 })
	}
	open()
	got, charges := group.wait(), r.Bank.transfersMade()-before
	return outcome{
		Happened: fmt.Sprintf("%s, %d replay for the retry", plural(charges, "charge"), got.Replayed),
		Right:    charges == 1 && got.Done == 1 && got.Replayed == 1,
	}, err
}

// plural returns a number and a noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Payments are the results of the copies of one payment.
type payments struct {
	Charges  int
	Replayed [2]int // of the concurrent copies, and of the retries
	Answers  counts
}

// String returns a text such as "1 charge, 8 + 9 replays, all equal".
func (p payments) String() string {
	protocol := []string{plural(p.Charges, "charge"), fmt.Sprintf("%d + %d replays", p.Replayed[0], p.Replayed[1])}
	switch answers := len(p.Answers.Contents); answers {
	case 0:
	case 1:
		protocol = append(protocol, "all equal")
	default:
		protocol = append(protocol, fmt.Sprintf("%d different answers", answers))
	}
	return strings.Join(append(protocol, p.Answers.failures()...), ", ")
}
