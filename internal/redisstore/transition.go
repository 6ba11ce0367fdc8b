package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Take sends SET NX GET, or its stand-in on servers before Redis 7. Nil or our
// own token means held.
func (s *Store) Take(r store.Request, done func(store.Answer, error)) {
	t := &taking{asking{s, r, done}, time.Now()}
	c := s.takeCommand(s.names.lock(r.Key), r.Token, r.TTL.Milliseconds())
	s.takes.do(newExchange(t, c, &r, t.begun))
}

// Enqueue runs enqueue.lua.
func (s *Store) Enqueue(r store.Request, done func(store.Answer, error)) {
	c := s.callLine(&s.scripts.enqueue, &r, 2)
	c.args = append(c.args, joinArg(r.Join), r.Fences)
	s.takes.do(newExchange(&enqueueing{asking{s, r, done}}, c, &r, time.Now()))
}

// Renew runs renew.lua.
func (s *Store) Renew(r store.Request, done func(store.Renewal, error)) {
	c := s.call(&s.scripts.renew, &r, 3)
	c.args = append(c.args, r.Token, r.TTL.Milliseconds(), r.Fences)
	s.keeps.do(newExchange(&renewing{r, done}, c, &r, time.Now()))
}

// Release runs release.lua.
func (s *Store) Release(r store.Request, done func(store.Released, error)) {
	c := s.callLine(&s.scripts.release, &r, 1)
	c.args = append(c.args, r.Rejoin)
	s.keeps.do(newExchange(&releasing{s, r, done}, c, &r, time.Now()))
}

// asking is what Take and Enqueue have in common.
type asking struct {
	store   *Store
	request store.Request
	done    func(store.Answer, error)
}

// answer answers the request.
func (a *asking) answer(answer store.Answer, err error, uncertain bool) {
	if err != nil {
		a.done(store.Answer{}, newFault(err, uncertain))
		return
	}
	a.done(answer, nil)
}

// won hints at a key that a send has won which was left behind.
func (a *asking) won(answer store.Answer, err error) {
	if err == nil && answer.Granted {
		a.store.hint(a.request.Key, a.request.Token)
	}
}

type taking struct {
	asking
	begun time.Time
}

func (t *taking) settle(got reply, uncertain bool) {
	answer, err := decodeTake(got, t.request, t.begun)
	t.answer(answer, err, uncertain)
}

func (t *taking) late(got reply) { t.won(decodeTake(got, t.request, t.begun)) }

type enqueueing struct{ asking }

func (t *enqueueing) settle(got reply, uncertain bool) {
	answer, err := decodeEnqueue(got, t.request)
	t.answer(answer, err, uncertain)
}

func (t *enqueueing) late(got reply) { t.won(decodeEnqueue(got, t.request)) }

type renewing struct {
	request store.Request
	done    func(store.Renewal, error)
}

func (t *renewing) settle(got reply, uncertain bool) {
	renewal, err := decodeRenew(got, t.request)
	if err != nil {
		t.done(store.Renewal{}, newFault(err, uncertain))
		return
	}
	t.done(renewal, nil)
}

func (t *renewing) late(reply) {}

type releasing struct {
	store   *Store
	request store.Request
	done    func(store.Released, error)
}

// settle reads the answer. A token that is gone at the second send may have
// been released by the first one: then it is not known what became of the key.
func (t *releasing) settle(got reply, uncertain bool) {
	released, err := decodeRelease(got, t.request)
	switch {
	case err != nil:
		t.done(store.Released{}, newFault(err, uncertain))
		return
	case released.End == store.NotHeld && uncertain:
		released.End = store.Unsure
	}
	t.done(released, nil)
}

func (t *releasing) late(got reply) {
	if released, err := decodeRelease(got, t.request); err == nil && released.End == store.Kept {
		t.store.hint(t.request.Key, t.request.Rejoin)
	}
}

// call returns a command that calls a script for the lock of the request: its
// keys are the lock, its line, and its fence if fencing numbers are wanted. There
// is room for so many arguments behind them.
func (s *Store) call(script *script, r *store.Request, args int) command {
	lock := s.names.lock(r.Key)
	c := script.call(2, 1+args)
	c.args = append(c.args, lock, s.names.companion(lock, lineSuffix))
	if r.Fences > 0 {
		c.args[2] = 3
		c.args = append(c.args, s.names.companion(lock, fenceSuffix))
	}
	return c
}

// callLine returns one for a script that works on the line: line.lua names the
// arguments that stand before the script's own.
func (s *Store) callLine(script *script, r *store.Request, own int) command {
	c := s.call(script, r, 5+own)
	c.args = append(c.args, r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), s.channelPrefix, s.mode)
	return c
}

// joinArg is how enqueue.lua is told whether to join the line.
func joinArg(join bool) int {
	if join {
		return 1
	}
	return 0
}
