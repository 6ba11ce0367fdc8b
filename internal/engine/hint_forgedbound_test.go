package engine

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Forged hints name many dead tokens while the server does not answer. The process
// keeps few of them, and its own releases go on.
func TestReleasesByForgedHintsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		var dead []string
		for range 10 * maxHinted {
			dead = append(dead, deadToken(t, e))
		}
		h := hold(t, e, request(0))
		s.before.set(func(string, storetest.AnyRequest) error {
			time.Sleep(bound)
			return errDown
		})
		before, tried := runtime.NumGoroutine(), s.begunCount("release")
		for i, token := range dead {
			s.hint("k", token)
			s.hint(fmt.Sprint("another key ", i), token)
		}
		synctest.Wait()
		const each = 2 // one of the engine, and one of the fake store
		if got := runtime.NumGoroutine() - before; got > each*maxHinted {
			t.Errorf("%d goroutines for %d hints", got, 2*len(dead))
		}
		if got := s.begunCount("release") - tried; got != maxHinted {
			t.Errorf("%d tokens were released, want %d", got, maxHinted)
		}
		if loss, err := h.Release(t.Context()); loss != NotLost || err == nil {
			t.Errorf("released with loss %v, error %v", loss, err)
		}
		s.before.set(nil)
		time.Sleep(time.Second)
		if got := s.value("k"); got != "" {
			t.Errorf("the token of the holder's own release stays: %q", got)
		}
		time.Sleep(2 * discardTimeout)
		s.set("k", dead[0], time.Minute)
		s.hint("k", dead[0])
		synctest.Wait()
		if got := s.value("k"); got != "" {
			t.Errorf("after the forged hints the key keeps the dead token %q", got)
		}
	})
}

// Forged hints arrive while the engine is being closed.
func TestForgedHintsDoNotDelayClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := []string{deadToken(t, e), deadToken(t, e), deadToken(t, e)}
		s.before.set(delays(10*time.Millisecond, "release"))
		over := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				s.hint("k", dead[0]) // the same token many times
				s.hint(fmt.Sprint("another key ", i), dead[1])
				s.hint(fmt.Sprint("another key ", i), dead[2])
			}
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		err := e.Close(ctx)
		close(over)
		if took := time.Since(begun); err != nil || took > time.Second {
			t.Errorf("closed after %v with %v", took, err)
		}
		synctest.Wait()
	})
}

// A dead token is being discarded from another key, for which it was never used. It is
// still released from the key that holds it.
func TestHintOfWrongKeyDoesNotBlockDiscard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.set("k", dead, time.Minute) // a delayed SET
		s.before.set(func(_ string, r storetest.AnyRequest) error {
			if r.Key != "k" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		s.hint("another key", dead)
		synctest.Wait()
		s.hint("k", dead)
		synctest.Wait()
		if got := s.value("k"); got != "" {
			t.Errorf("the key keeps the dead token %q", got)
		}
		time.Sleep(10 * time.Second)
	})
}

// A waiter leaves its queue at Close. Forged hints go on naming its token, and the
// tokens of leases that are being released.
func TestForgedHintsDoNotProlongReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "another", time.Hour)
		s.before.set(delays(10*time.Millisecond, "release"))
		left := make(chan struct{})
		go func() {
			defer close(left)
			refuses(t, e, request(WaitForever), ClosedDown)
		}()
		synctest.Wait()
		h := hold(t, e, Request{Key: "other", TTL: time.Second})
		over := make(chan struct{})
		go func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				s.hint("k", "me:1")
				s.hint("other", h.Token())
			}
		}()
		go func() { _, _ = h.Release(t.Context()) }()
		time.Sleep(time.Second)
		begun := time.Now()
		if err := e.Close(t.Context()); err != nil || time.Since(begun) > time.Second {
			t.Errorf("closed after %v with %v", time.Since(begun), err)
		}
		close(over)
		<-left
		synctest.Wait()
	})
}

// Many commands that were left behind lock their keys at the same time, as after a
// network that delayed them. No hint is forged, and all keys are released.
func TestAllLateGrantsAreReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		const many = 5 * maxHinted
		var keys, tokens []string
		for i := range many {
			key := fmt.Sprint("key ", i)
			h := hold(t, e, Request{Key: key, TTL: time.Minute})
			release(t, h)
			keys, tokens = append(keys, key), append(tokens, h.Token())
		}
		s.before.set(delays(100 * time.Millisecond))
		for i, key := range keys {
			s.set(key, tokens[i], time.Minute)
			s.lateGrant(key, tokens[i])
		}
		time.Sleep(time.Second)
		for _, key := range keys {
			if s.value(key) != "" {
				t.Errorf("the %s is locked without a holder", key)
			}
		}
	})
}

// Hints name tokens in keys of a server that does not answer. A dead token of another
// key is released when the next hint names it.
func TestHintsOfSilentServerMakeRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.before.set(func(_ string, r storetest.AnyRequest) error {
			if r.Key != "k" {
				time.Sleep(r.Bound)
				return errNoCommitReply
			}
			return nil
		})
		for i := range maxHinted {
			s.hint(fmt.Sprint("silent ", i), dead)
		}
		s.set("k", dead, time.Minute)
		begun := time.Now()
		for s.value("k") != "" && time.Since(begun) < time.Minute {
			s.hint("k", dead)
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took > 2*discardBounds*bound+time.Second {
			t.Errorf("released after %v", took)
		}
		time.Sleep(time.Minute)
	})
}

// A token that hints have named makes room for other hints once the engine itself finds
// the token dead.
func TestRoomOfTokensFromHints(t *testing.T) {
	t.Parallel()
	var d discardSet
	for i := range maxHinted {
		if !d.addHinted(keyToken{"k", strconv.Itoa(i)}) {
			t.Fatalf("token %d was refused", i)
		}
	}
	first, more, full := keyToken{"k", "0"}, keyToken{"k", "more"}, keyToken{"k", "full"}
	if d.add(first, nil) || !d.addHinted(more) || d.addHinted(full) {
		t.Error("a token that is found dead makes room for not just one other")
	}
	if d.complete(first) || !d.complete(first) || d.addHinted(full) {
		t.Error("the end of a token that was found dead makes room a second time")
	}
}
