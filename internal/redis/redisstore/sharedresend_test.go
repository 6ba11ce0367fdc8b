package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A slow command is sent twice, and both sends have the reply that the script for shared
// leases has to follow.
func TestBothSendsMeetSharedLeases(t *testing.T) {
	t.Parallel()
	bob := store.NewToken(storetest.Bob, 2, 1)
	before := storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{bob: storetest.TTL}}
	for name, do := range map[string]func(*syncStore, storetest.AnyRequest) (isRight bool, err error){
		"enqueue": func(s *syncStore, r storetest.AnyRequest) (bool, error) {
			got, err := s.Enqueue(t.Context(), r)
			return !got.Granted && got.Shared, err
		},
		"release": func(s *syncStore, r storetest.AnyRequest) (bool, error) {
			got, err := s.Release(t.Context(), r)
			return got.Status == store.NotHeld || got.Status == store.Unsure, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t, storetest.LongReads)
			before.Put(t, direct)
			first, seenFirst := proxy.HoldCommand(redistest.Named("EVAL"))
			second, seenSecond := proxy.HoldCommand(redistest.Named("EVAL"))
			t.Cleanup(func() { first(); second() })
			r := storetest.Request(storetest.Me1)
			r.Bound = heldBound
			ended := make(chan error, 1)
			go func() {
				isRight, err := do(s, r)
				if !isRight {
					t.Error("the result is wrong")
				}
				ended <- err
			}()
			suite.Receive(t, "the first send is held", seenFirst)
			suite.Receive(t, "the second send is held", seenSecond)
			first()
			second()
			if err := suite.Receive(t, "the transition ends", ended); err != nil {
				t.Error(err)
			}
		})
	}
}
