package engine

import (
	"strconv"
	"testing"
	"time"
)

func TestLoadHasTheLongestHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		e := p.engines[0]
		p.search(0) // its lease is none of the program
		var holds []*Hold
		for i := range 6 {
			r := request(WaitForever)
			r.Key, r.Name, r.Caller = strconv.Itoa(i), "account", "code"
			if i == 3 {
				r.Limit = Unlimited
			}
			holds = append(holds, hold(t, e, r))
			sleep(time.Second)
		}
		r := request(WaitForever)
		r.Key = "1"
		waiting(t, e, r, func(*Hold) {})
		release(t, holds[0])
		load := e.Load(3)
		if load.Held != 5 || load.Waiting != 1 || len(load.Longest) != 3 {
			t.Errorf("%+v", load)
		}
		for i, h := range load.Longest {
			if h.Key != strconv.Itoa(i+1) || h.Name != "account" || h.Caller != "code" || time.Since(h.Since) != time.Duration(5-i)*time.Second {
				t.Errorf("%d: %+v, held for %v", i, h, time.Since(h.Since))
			}
		}
		for _, h := range holds[1:] {
			release(t, h)
		}
		sleep(time.Second)
		if load := e.Load(3); load.Held != 0 || load.Waiting != 0 || len(load.Longest) != 0 {
			t.Errorf("at the end: %+v", load)
		}
		closes(t, e)
	})
}
