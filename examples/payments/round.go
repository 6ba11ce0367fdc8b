package main

import (
	"context"
	"sync"
	"time"
)

// A scenario is a set of requests. It went as expected if run returns the expected text.
type scenario struct {
	sent, expected string
	run            func(*round) (happened string)
	onlyHTTP       bool
}

// A result is what a scenario has led to.
type result struct {
	sent, expected, happened string
	took                     time.Duration
}

// A round is the run of a scenario on a site. Operations stay inside their handlers until open.
type round struct {
	*site
	ctx     context.Context
	service *instance
	clients sync.WaitGroup
}

// play runs a scenario. It gives up after a minute, which allows for a very busy machine.
func (s *site) play(ctx context.Context, service *instance, what scenario) result {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := &round{site: s, ctx: ctx, service: service}
	s.update(func(now *counts) {
		*now = counts{inside: now.inside, most: now.inside, contents: make(map[string]bool), others: make(map[string]int)}
	})
	defer r.open()
	begun := time.Now()
	happened := what.run(r)
	if ctx.Err() != nil {
		happened += "; it took more than a minute"
	}
	return result{what.sent, s.words.Replace(what.expected), happened, time.Since(begun)}
}

// open lets the operations go on.
func (r *round) open() { r.update(func(now *counts) { now.open = true }) }

// ask sends a request, and returns the answer.
func (r *round) ask(what request) answer { return r.framework.send(r.ctx, r.service.addr, what) }

// send adds a client of an instance. It sends requests one after the other.
func (r *round) send(to *instance, requests ...request) {
	r.clients.Go(func() {
		for _, request := range requests {
			got := r.framework.send(r.ctx, to.addr, request)
			r.update(func(now *counts) { now.answer(request, got) })
		}
	})
}

// sendNine adds nine clients of the service, each with a request.
func (r *round) sendNine(what func(n int) request) {
	for n := range nine {
		r.send(r.service, what(n))
	}
}

// arrived waits until n requests are inside a handler, wait for a lock, or have their answers.
func (r *round) arrived(n int) {
	r.await(r.ctx, func(now counts) bool { return now.inside+now.waiting+now.answered >= n })
}

// finish lets the operations go on, and waits until all clients have their answers.
func (r *round) finish() counts {
	r.open()
	r.clients.Wait()
	return r.await(r.ctx, func(counts) bool { return true })
}
