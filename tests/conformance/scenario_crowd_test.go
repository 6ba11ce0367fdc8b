package conformance

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

// crowdScenarios are about copies that come at the same time.
func crowdScenarios() []testCase {
	return []testCase{
		{"of a hundred copies one runs, and the others are told when to retry", everywhere, crowdRefused},
		{"of a hundred copies one runs, and the others wait for its answer", everywhere, crowdWaits},
		{"a waiting copy runs when the first one frees the key", everywhere, waiterRunsAfterAbort},
		{"a copy waits as long as it may", everywhere, waiterTimesOut},
		{"the client of a waiting copy goes", everywhere, waiterGoes},
		{"two processes", everywhere, twoProcesses},
	}
}

// crowd is how many copies come at once.
const crowd = 100

// submit sends so many copies of a payment at once.
func (s *shop) submit(n int, r sent) []got {
	answers := make([]got, n)
	var sent sync.WaitGroup
	for i := range answers {
		sent.Go(func() { answers[i] = s.do(s.Context(), r) })
	}
	sent.Wait()
	return answers
}

func crowdRefused(e *env) {
	s := e.shop(endpoint{handler: func(t turn) {
		e.events.await(e.T, core.Refused, crowd-1)
		t.WriteHeader(http.StatusCreated)
	}})
	created := 0
	for _, answer := range s.submit(crowd, payment("crowd")) {
		if answer.status == http.StatusCreated {
			created++
			continue
		}
		s.wantRefused(core.ErrBusy, answer)
	}
	if n := s.runs.Load(); n != 1 || created != 1 {
		e.Errorf("%d have run, %d were answered", n, created)
	}
}

func crowdWaits(e *env) {
	s := e.shop(endpoint{
		options: []core.Option{core.WithWait(patience)},
		handler: func(t turn) {
			e.events.await(e.T, core.Waiting, crowd-1)
			t.Header().Set("Location", "/payments/1")
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		},
	})
	answers := s.submit(crowd, payment("crowd"))
	var first got
	for _, answer := range answers {
		if answer.header["Idempotent-Replayed"] == nil {
			first = answer
		}
	}
	if first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
	}
	firsts := 0
	for _, answer := range answers {
		if answer.header["Idempotent-Replayed"] == nil {
			firsts++
			continue
		}
		s.wantReplay(first, answer)
	}
	if n := s.runs.Load(); n != 1 || firsts != 1 {
		e.Errorf("%d have run, %d answers are not replayed", n, firsts)
	}
}

// Exactly one of those who wait runs next, and the others go on waiting.
func waiterRunsAfterAbort(e *env) {
	var s *shop
	s = e.shop(endpoint{
		options: []core.Option{core.WithWait(patience)},
		handler: func(t turn) {
			if s.runs.Load() == 1 {
				e.events.await(e.T, core.Waiting, 4)
				t.WriteHeader(http.StatusBadGateway)
				return
			}
			t.WriteHeader(http.StatusCreated)
		},
	})
	statuses := map[int]int{}
	for _, answer := range s.submit(5, payment("abort")) {
		statuses[answer.status]++
	}
	if n := s.runs.Load(); n != 2 || statuses[http.StatusBadGateway] != 1 || statuses[http.StatusCreated] != 4 {
		e.Errorf("%d have run, and the answers are %v", n, statuses)
	}
}

func waiterTimesOut(e *env) {
	waits := e.shop(endpoint{options: []core.Option{core.WithWait(shortWait)}})
	s := e.shop(endpoint{handler: func(t turn) {
		waits.refuses(core.ErrWaitTimeout, payment("slow"))
		t.WriteHeader(http.StatusCreated)
	}})
	s.replays(s.runsWith(http.StatusCreated, payment("slow")), payment("slow"))
}

// The body has been read, so that net/http sees it.
func waiterGoes(e *env) {
	var s *shop
	s = e.shop(endpoint{
		options: []core.Option{core.WithWait(time.Minute)},
		handler: func(t turn) {
			ctx, leave := context.WithCancel(e.Context())
			defer leave()
			left := make(chan struct{})
			go func() {
				defer close(left)
				e.events.await(e.T, core.Waiting, 1)
				leave()
			}()
			if answer := s.do(ctx, payment("gone")); answer.err == nil {
				e.Errorf("an answer for a client that has gone: %+v", answer)
			}
			<-left
			e.events.await(e.T, core.Refused, 1)
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.replays(s.runsWith(http.StatusCreated, payment("gone")), payment("gone"))
}

// What one process has answered, another one answers again.
func twoProcesses(e *env) {
	other := *e
	other.locks = e.another()
	var there *shop
	here := e.shop(endpoint{handler: func(t turn) {
		there.wantRefused(core.ErrBusy, there.do(e.Context(), payment("process")))
		t.WriteHeader(http.StatusCreated)
	}})
	there = other.shop(endpoint{})
	first := here.runsWith(http.StatusCreated, payment("process"))
	there.replays(first, payment("process"))
}

// another returns the Locker of another process.
func (e *env) another() *core.Locker {
	e.Helper()
	locks := core.Must(core.New(e.rdb, core.WithPrefix(e.prefix), core.WithCommandTimeout(2*time.Second)))
	e.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // an attempt that has died is not waited for
		_ = locks.Close(ctx)
	})
	return locks
}
