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

// Payments are the results of the copies of one payment.
type payments struct {
	Charges  int
	Replayed [2]int // of the concurrent copies, and of the retries
	Answers  counts
}

// String returns a text such as "1 charge, 8 + 9 replays, all equal".
func (p payments) String() string {
	protocol := []string{
		fmt.Sprintf("%d charges", p.Charges),
		fmt.Sprintf("%d + %d replays", p.Replayed[0], p.Replayed[1]),
	}
	if p.Charges == 1 {
		protocol[0] = "1 charge"
	}
	switch answers := len(p.Answers.Contents); answers {
	case 0:
	case 1:
		protocol = append(protocol, "all equal")
	default:
		protocol = append(protocol, fmt.Sprintf("%d different answers", answers))
	}
	return strings.Join(append(protocol, p.Answers.failures()...), ", ")
}
