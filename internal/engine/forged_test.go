package engine

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// deadToken returns a token of the engine for the key of request that was released.
func deadToken(t *testing.T, e *Engine) string {
	t.Helper()
	h := hold(t, e, request(0))
	release(t, h)
	return h.Token()
}

// Another user of the server publishes the token that the process issues next, and
// publishes it again once it is issued. The releases are slow.
//
//faults:row 51
func TestAForgedHintReleasesNoLease(t *testing.T) {
	for name, forge := range map[string]func(n int) string{
		"of the token":                  func(n int) string { return fmt.Sprint("me:", n) },
		"of the token, with a zero":     func(n int) string { return fmt.Sprint("me:0", n) },
		"of the token, and a long tail": func(n int) string { return fmt.Sprint("me:", n, ":1") },
		"of no number":                  func(int) string { return "me:" },
		"of a huge number":              func(int) string { return "me:18446744073709551615" },
		"of a number that is too big":   func(int) string { return "me:18446744073709551616" },
		"of another process":            func(n int) string { return fmt.Sprint("you:", n) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				s.before.set(func(transition string, _ store.Request) error {
					if transition == "release" {
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				})
				for n := range 3 {
					forged := forge(n + 1)
					s.hint("k", forged)
					s.hint("k", forged)
					synctest.Wait()
					h := hold(t, e, request(0))
					for range 10 {
						s.hint("k", forged)
						time.Sleep(30 * time.Millisecond)
					}
					if value := s.value("k"); value != h.Token() {
						t.Fatalf("the key holds %q under the holder of %q", value, h.Token())
					}
					release(t, h)
				}
				if got := s.count("release"); got != 3 || len(events.of(Lost)) != 0 {
					t.Errorf("%d releases of 3 leases, %d losses", got, len(events.of(Lost)))
				}
			})
		})
	}
}

// The value of a key names a token that is not issued yet: another user wrote it.
func TestAForgedValueIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", "me:3", time.Second) // the lock asks for it as me:1
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("got %v", err)
		}
		if s.count("release") != 0 || s.value("k") != "me:3" {
			t.Errorf("%d releases, and the key holds %q", s.count("release"), s.value("k"))
		}
	})
}

// A forger names many dead tokens while the server does not answer. The process
// remembers few of them, and goes on with its own.
//
//faults:row 51
func TestForgedHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		var dead []string
		for range 10 * mostNamed {
			dead = append(dead, deadToken(t, e))
		}
		h := hold(t, e, request(0))
		s.before.set(func(string, store.Request) error { return errDown })
		before, tried := runtime.NumGoroutine(), s.tried("release")
		for i, token := range dead {
			s.hint("k", token)
			s.hint(fmt.Sprint("another key ", i), token)
		}
		synctest.Wait()
		if got := runtime.NumGoroutine() - before; got > mostNamed {
			t.Errorf("%d goroutines for %d hints", got, 2*len(dead))
		}
		if got := s.tried("release") - tried; got != mostNamed {
			t.Errorf("%d tokens were released, want %d", got, mostNamed)
		}
		if loss, err := h.Release(t.Context()); loss != NotLost || err == nil {
			t.Errorf("released with loss %v, error %v", loss, err)
		}
		s.before.set(nil)
		time.Sleep(time.Second)
		if got := s.value("k"); got != "" {
			t.Errorf("the token of the holder's own release stays: %q", got)
		}
		time.Sleep(2 * hintPatience)
		s.set("k", dead[0], time.Minute)
		s.hint("k", dead[0])
		synctest.Wait()
		if got := s.value("k"); got != "" {
			t.Errorf("after the forger the key keeps the dead token %q", got)
		}
	})
}

// A forger goes on while the engine is being closed.
//
//faults:row 51
func TestForgedHintsDoNotHoldUpClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := []string{deadToken(t, e), deadToken(t, e), deadToken(t, e)}
		s.before.set(func(transition string, _ store.Request) error {
			if transition == "release" {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		over := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
				s.hint("k", dead[0]) // again and again
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

// A dead token is being discarded from another key, where nobody ever used it. That
// does not keep it from being released where it is.
func TestAForgedKeyDoesNotShadowTheRealOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.set("k", dead, time.Minute) // a delayed SET
		s.before.set(func(_ string, r store.Request) error {
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
