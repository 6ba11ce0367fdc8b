package quorumstore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMajorityIsUnserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		s.Watch()
		var times []time.Time
		for i, f := range fakes {
			if !f.watched {
				t.Errorf("server %d is not watched", i)
			}
			time.Sleep(time.Second)
			times = append([]time.Time{time.Now()}, times...) // the last server failed first
		}
		for _, i := range []int{3, 1} {
			fakes[i].unserved = times[i]
			if since, why := s.Unserved("k"); !since.IsZero() || why != nil {
				t.Errorf("a majority serves, and since %v: %v", since, why)
			}
		}
		fakes[4].unserved = times[4]
		since, why := s.Unserved("k")
		if !since.Equal(times[1]) || !strings.HasPrefix(why.Error(), "no majority: 3 of 5 servers failed") {
			t.Errorf("since %v, want %v: %v", since, times[1], why)
		}
		fakes[0].unserved = times[0]
		if since, _ := s.Unserved("k"); !since.Equal(times[1]) {
			t.Errorf("the majority is missing since %v, want %v", since, times[1])
		}
	})
}
