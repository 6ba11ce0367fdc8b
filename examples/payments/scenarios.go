package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
)

// nine is the number of concurrent clients.
const nine = 9

// scenarios returns the scenarios in their order. Expected statuses are those of HTTP.
func scenarios() []scenario {
	return []scenario{
		{"9 transfers from alice, no wait", "1 done, 8 × 409 + Retry-After", oneRuns, false},
		{"9 orders of ann, each waits", "9 done one by one, in order", inTurn, false},
		{"9 orders of nine users", "9 done, all inside at once", inParallel, false},
		{"100 alice→bob and 100 bob→alice", "200 done, balances right", bothWays, false},
		{"9 payments of one key, 9 retries", "1 charge, 8 + 9 replays, all equal", oneCharge, false},
		{"2 transfers, lock holder killed", "409, then done after 2 s (TTL)", afterCrash, false},
		{"9 settlements, 3 permits", "9 done, at most 3 inside at once", inThrees, false},
		{"9 reads of alice, 1 settlement", "10 done, 9 reads at once, then 1 write", readsThenWrite, false},
		{"1 payment, client hangs up, 1 retry", "1 charge, 1 replay for the retry", hangsUp, false},
		{"1 payment fails uncharged, 1 retry", "500, then done, 1 charge", failsAt("clearing"), false},
		{"1 payment fails charged, 1 retry", "500, then unknown, 1 charge", failsAt("booking"), false},
		{"1 payment during a deploy, 1 retry", "1 charge, 1 replay for the retry", isDeployed, false},
		{"1 payment, Redis away, 2 retries", "1 charge, 2 replays", redisIsAway, false},
		{"1 payout, 1 retry, 1 transfer", "202, 1 replay, 409 meanwhile, 1 charge", isLeftToAWorker, true},
	}
}

// oneRuns sends nine transfers from one account. One runs until the others have their answers.
func oneRuns(r *round) string {
	r.sendNine(func(int) request { return request{do: "transfer", user: "alice", transfer: transfer{"bob", 100}} })
	r.arrived(nine)
	return r.finish().answers()
}

// inTurn sends nine orders of one user, which wait for the lock. It sends an order when the previous
// one waits, so that their order is known.
func inTurn(r *round) string {
	var sent []string
	for n := range nine {
		item := fmt.Sprint("item-", n)
		r.send(r.service, request{do: "orders", user: "ann", item: item})
		r.arrived(n + 1)
		sent = append(sent, "order ann "+item)
	}
	got := r.finish()
	if got.most != 1 || !slices.Equal(got.operations, sent) {
		return fmt.Sprintf("%s, %d at once or out of order", got.answers(), got.most)
	}
	return got.answers() + " one by one, in order"
}

// inParallel sends one order of each of nine users. Their handlers run until all have started.
func inParallel(r *round) string {
	r.sendNine(func(n int) request { return request{do: "orders", user: fmt.Sprint("user-", n), item: "item"} })
	r.arrived(nine)
	got := r.finish()
	if got.most != nine {
		return fmt.Sprintf("%s, %d inside at once", got.answers(), got.most)
	}
	return got.answers() + ", all inside at once"
}

// bothWays sends transfers from alice to bob and back. Each takes the locks of both accounts: in the
// order of the request, they would deadlock. Each client begins when the previous ones are inside or
// wait, so that both directions have permits.
func bothWays(r *round) string {
	const clients, transfers = 8, 25
	alice, bob := r.bank.accounts["alice"], r.bank.accounts["bob"]
	aliceBefore, bobBefore := alice.Load(), bob.Load()
	there := request{do: "settle", user: "alice", transfer: transfer{"bob", 3}}
	back := request{do: "settle", user: "bob", transfer: transfer{"alice", 2}}
	for n := range clients {
		r.send(r.service, slices.Repeat([]request{[]request{there, back}[n%2]}, transfers)...)
		r.arrived(n + 1)
	}
	got := r.finish()
	const net = clients / 2 * transfers * (3 - 2)
	if a, b := alice.Load()-aliceBefore, bob.Load()-bobBefore; got.most != 1 || a != -net || b != net {
		return fmt.Sprintf("%s, %d at once, alice %+d, bob %+d cents", got.answers(), got.most, a, b)
	}
	return got.answers() + ", balances right"
}

// inThrees sends nine settlements of different accounts. Three run until the others wait.
func inThrees(r *round) string {
	r.sendNine(func(n int) request {
		return request{do: "settle", user: fmt.Sprint("payer-", n), transfer: transfer{fmt.Sprint("payee-", n), 100}}
	})
	r.await(r.ctx, func(now counts) bool {
		return now.answered > 0 || now.inside >= 3 && now.inside+now.waiting >= nine
	})
	got := r.finish()
	return fmt.Sprintf("%s, at most %d inside at once", got.answers(), got.most)
}

// readsThenWrite reads an account nine times, and sends a settlement of it while all reads run. The
// reads run until the settlement waits.
func readsThenWrite(r *round) string {
	r.sendNine(func(int) request { return request{do: "balance", user: "alice"} })
	r.await(r.ctx, func(now counts) bool { return now.answered > 0 || now.inside == nine })
	r.send(r.service, request{do: "settle", user: "alice", transfer: transfer{"bob", 1}})
	r.arrived(nine + 1)
	got := r.finish()
	want := append(slices.Repeat([]string{"show alice"}, nine), "transfer alice bob")
	if got.most != nine || !slices.Equal(got.operations, want) {
		return fmt.Sprintf("%s, %d at once or out of order", got.answers(), got.most)
	}
	return got.answers() + ", 9 reads at once, then 1 write"
}

// payment returns a payment with a key of its own.
func payment() request {
	return request{do: "payments", user: "alice", transfer: transfer{"bob", 100}, key: rand.Text()}
}

// oneCharge sends one payment nine times at once, and then nine times more. The first runs until the
// others wait for its answer.
func oneCharge(r *round) string {
	paid := payment()
	r.sendNine(func(int) request { return paid })
	r.arrived(nine)
	atOnce := r.finish().replays
	r.sendNine(func(int) request { return paid })
	got := r.finish()
	return fmt.Sprintf("%s, %d + %d replays%s", got.charged(), atOnce, got.replays-atOnce, cmp.Or(got.faults(), ", all equal"))
}

// hangsUp sends a payment whose client gives up while the payment runs, and then asks again.
func hangsUp(r *round) string {
	paid := payment()
	patient, hangUp := context.WithCancel(r.ctx)
	defer hangUp()
	left := make(chan answer, 1)
	go func() { left <- r.framework.send(patient, r.service.addr, paid) }()
	r.arrived(1)
	hangUp()
	if first := <-left; first.status == done {
		return "the client did not give up"
	}
	return r.retry(paid)
}

// retry sends a payment again while it runs, and lets it go on.
func (r *round) retry(paid request) string {
	r.send(r.service, paid)
	r.arrived(2)
	got := r.finish()
	return fmt.Sprintf("%s, %d replay for the retry%s", got.charged(), got.replays, got.faults())
}

// failsAt returns a scenario that sends a payment which fails there, and then sends it again. If it
// has charged nothing, the second one charges. Otherwise it is refused, because it is unknown whether
// the first one has charged.
func failsAt(there string) func(*round) string {
	return func(r *round) string {
		r.update(func(now *counts) { now.fails, now.open = there, true })
		paid := payment()
		first, second := r.ask(paid), r.ask(paid)
		return fmt.Sprintf("%s, then %s, %s", first.status, second.status, r.finish().charged())
	}
}

// isDeployed sends a payment to an instance, sends it again to the service while a deploy stops the
// instance, and lets the payment go on.
func isDeployed(r *round) string {
	old, err := r.start(r.ctx)
	if err != nil {
		return err.Error()
	}
	paid := payment()
	r.send(old, paid)
	r.arrived(1)
	stopped := make(chan error, 1)
	go func() { stopped <- old.stop(r.ctx) }()
	happened := r.retry(paid)
	if err := <-stopped; err != nil {
		return err.Error()
	}
	return happened
}

// redisIsAway sends a payment to an instance that loses its Redis before the payment is made, and
// twice again: to the same instance, and to the service when Redis has the answer.
func redisIsAway(r *round) string {
	away, err := r.start(r.ctx)
	if err != nil {
		return err.Error()
	}
	paid := payment()
	r.send(away, paid)
	r.arrived(1)
	mend := away.cut()
	defer mend()
	r.finish()
	r.send(away, paid)
	r.finish()
	mend()
	r.await(r.ctx, func(now counts) bool { return now.recovered > 0 })
	r.send(r.service, paid)
	got := r.finish()
	if err := away.stop(r.ctx); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %d replays%s", got.charged(), got.replays, got.faults())
}

// isLeftToAWorker sends a payout, sends it again while the worker makes it, and sends a transfer meanwhile.
func isLeftToAWorker(r *round) string {
	paid := payment()
	paid.do = "payouts"
	accepted := r.ask(paid)
	r.await(r.ctx, func(now counts) bool { return now.inside == 1 })
	r.send(r.service, paid)
	r.arrived(2)
	meanwhile := r.ask(request{do: "transfer", user: "alice", transfer: transfer{"bob", 100}})
	r.finish()
	got := r.await(r.ctx, func(now counts) bool { return now.charges > 0 && now.inside == 0 })
	status, _, _ := strings.Cut(accepted.content, " ")
	return fmt.Sprintf("%s, %d replay%s, %s meanwhile, %s", status, got.replays, got.faults(), meanwhile.status, got.charged())
}
