package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// oneCharge sends one payment nine times at once, as a program would that has
// lost its patience, and then nine times more. All have the same idempotency
// key. The one that runs stays inside until the others wait for its answer.
func oneCharge(ctx context.Context, r *running) (finding, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Scene.begin()
	defer open()
	crowd := newCrowd(r.Scene)
	send := func() {
		for range nine {
			crowd.send(1, func() (answer, error) { return r.Client.pay(ctx, key, "alice", "bob", 100) })
		}
	}
	send()
	err := r.Scene.until(ctx, func(now view) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	replayedAtOnce := crowd.wait().Replayed
	send()
	got := payments{Answers: crowd.wait(), Charges: r.Bank.transfersMade() - before}
	got.Replayed = [2]int{replayedAtOnce, got.Answers.Replayed - replayedAtOnce}
	return finding{
		Happened: got.String(),
		Right: got.Charges == 1 && got.Replayed == [2]int{nine - 1, nine} &&
			got.Answers.Done == 2*nine && len(got.Answers.Contents) == 1,
	}, err
}

// Payments are what became of the copies of one payment.
type payments struct {
	Charges  int
	Replayed [2]int // of those that were sent at once, and of the retries
	Answers  tally
}

// String returns it in words, as in "1 charge, 8 + 9 replays, all equal".
func (p payments) String() string {
	words := []string{
		fmt.Sprintf("%d charges", p.Charges),
		fmt.Sprintf("%d + %d replays", p.Replayed[0], p.Replayed[1]),
	}
	if p.Charges == 1 {
		words[0] = "1 charge"
	}
	switch answers := len(p.Answers.Contents); answers {
	case 0:
	case 1:
		words = append(words, "all equal")
	default:
		words = append(words, fmt.Sprintf("%d different answers", answers))
	}
	return strings.Join(append(words, p.Answers.failures()...), ", ")
}
