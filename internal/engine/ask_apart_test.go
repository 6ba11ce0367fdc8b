package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The store has to look for a token in its queue only while a command of the token may still arrive.
func TestTokenIsApartUntilAReplyIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost int // which command gets no reply, from 1
		want []string
	}{
		"no reply is lost":      {0, []string{"take", "enqueue apart fresh", "enqueue apart", "release apart"}},
		"of the take":           {1, []string{"take", "enqueue", "release"}},
		"of the first enqueue":  {2, []string{"take", "enqueue apart fresh", "enqueue", "release"}},
		"of the second enqueue": {3, []string{"take", "enqueue apart fresh", "enqueue apart", "enqueue", "release"}},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			var sent sendLog
			p.stores[1].before.set(sent.add)
			p.stores[1].after.set(func(string, storetest.AnyRequest) error {
				if sent.count() == test.lost {
					return errNoCommitReply
				}
				return nil
			})
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
			time.Sleep(100 * time.Millisecond)
			release(t, h)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := slices.Compact(sent.all()); !slices.Equal(got, test.want) {
				t.Errorf("sent %q, want %q", got, test.want)
			}
			p.checkIdle(t)
		})
	}
}

// A release without a reply may add its token to the store's queue at any later time.
func TestTokenOfAnUnsureReleaseIsNotApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		for _, e := range p.engines {
			waiting(t, e, request(WaitForever), func(*Hold) {})
		}
		time.Sleep(time.Second) // the budget is spent
		var sent sendLog
		p.stores[0].before.set(sent.add)
		p.stores[0].nextUnsure = true
		release(t, h)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := slices.Compact(sent.all()), []string{"release apart", "enqueue", "release"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
		p.checkIdle(t)
	})
}

// A sendLog has the transitions that were sent, and what each says of its token.
type sendLog struct {
	mu   sync.Mutex
	sent []string
}

func (l *sendLog) add(transition string, r storetest.AnyRequest) error {
	if r.Apart {
		transition += " apart"
	}
	if r.Fresh {
		transition += " fresh"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, transition)
	return nil
}

func (l *sendLog) count() int { return len(l.all()) }

func (l *sendLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}
