package engine

import (
	"strconv"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestLoadHasTheLongestHoldsAndWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		e := p.engines[0]
		e.hooks.Observe = nil // so Acquire itself needs no time for a caller that waits forever
		p.search(0)           // its lease is none of the program
		var holds []*Hold
		for i := range 6 {
			r := request(WaitForever)
			r.Key, r.Name, r.Caller = strconv.Itoa(i), "account", "code"
			switch i {
			case 2:
				r.Attempt = &Attempt{}
			case 3:
				r.Limit = Unlimited
			}
			holds = append(holds, hold(t, e, r))
			sleep(time.Second)
		}
		for i := range 8 { // 5 keys: the last 3 callers wait for keys of the first 3
			r := request(WaitForever)
			r.Key, r.Name, r.Caller = strconv.Itoa(1+i%5), "waits", strconv.Itoa(i)
			if i == 0 || i == 6 { // the first one of a key, and the second one
				r.Limit = Unlimited
			}
			waiting(t, e, r, func(*Hold) {})
			sleep(time.Second)
		}
		release(t, holds[0])
		load := e.Load(3)
		if load.Held != 5 || load.Waiting != 8 || len(load.Holds) != 3 || len(load.Waits) != 3 {
			t.Errorf("%+v", load)
		}
		now := time.Now()
		for i, h := range load.Holds {
			want := LongHold{Long{strconv.Itoa(i + 1), "account", "code", now.Add(time.Duration(i-13) * time.Second)}, holds[i+1].Token(), i == 1, i == 2}
			if h != want {
				t.Errorf("%d: %+v, want %+v", i, h, want)
			}
		}
		for i, w := range load.Waits {
			want := LongWait{Long{strconv.Itoa(i + 1), "waits", strconv.Itoa(i), now.Add(time.Duration(i-8) * time.Second)}, 2}
			if w != want {
				t.Errorf("%d: %+v, want %+v", i, w, want)
			}
		}
		for _, h := range holds[1:] {
			release(t, h)
		}
		sleep(time.Second)
		if load := e.Load(3); load.Held != 0 || load.Waiting != 0 || len(load.Holds)+len(load.Waits) != 0 {
			t.Errorf("at the end: %+v", load)
		}
		closes(t, e)
	})
}

// A wait counts from the arrival of its caller, also if the store replies late that another holds the key.
func TestAWaitBeginsWithItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		other, begun := hold(t, p.engines[0], request(0)), time.Now()
		p.stores[1].before.set(func(string, storetest.AnyRequest) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		waiting(t, p.engines[1], request(time.Minute), func(*Hold) {})
		sleep(time.Second)
		if waits := p.engines[1].Load(1).Waits; len(waits) != 1 || !waits[0].Since.Equal(begun) {
			t.Errorf("%+v, want the time %v", waits, begun)
		}
		release(t, other)
		sleep(time.Second)
		p.checkIdle(t)
	})
}
