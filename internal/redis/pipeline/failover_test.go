package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A lone caller and many callers are answered as soon as a replica has replaced the master,
// although the client would not load the slots by itself.
func TestKeysWorkAgainAfterFailover(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "paused" {
				suite.Full(t, "repeats the test with another failure")
			}
			cluster := redistest.StartCluster(t)
			master, tokens := cluster.Masters()[0], &storetest.Tokens{}
			tag := storetest.TagsOf(t, cluster)[master]
			lone, shared := newStore(t, cluster.Client(t, withoutReloads)), newStore(t, cluster.Client(t, withoutReloads))
			for _, s := range []*syncStore{lone, shared} {
				if err := take(s, tokens.Request(tokens.Next())); err != nil { // the client loads the slots
					t.Fatal(err)
				}
			}
			const callers = 40
			ofLone, ofShared := make(chan error, 1), make(chan error, callers)
			fault.begin(master)
			go func() { ofLone <- takeThroughFaults(lone, tokens.Request(tag+"lone")) }()
			for i := range callers {
				go func() { ofShared <- takeThroughFaults(shared, tokens.Request(fmt.Sprint(tag, i))) }()
			}
			cluster.AwaitFailover(master)
			over := time.Now()
			if err := suite.Receive(t, "the answer to the lone caller", ofLone); err != nil {
				t.Error(err)
			}
			for range callers {
				if err := suite.Receive(t, "the answers to all callers", ofShared); err != nil {
					t.Error(err)
				}
			}
			t.Logf("all callers are answered %v after the failover", time.Since(over).Round(time.Millisecond))
			fault.end(master)
		})
	}
}

// withoutReloads makes a client load the slots again only if the pipeline asks for it. A load
// from a paused node ends after the read timeout.
func withoutReloads(o *redis.ClusterOptions) {
	o.ClusterStateReloadInterval = time.Hour
	o.ReadTimeout = 500 * time.Millisecond
}

// takeThroughFaults takes a key, and tries again after each temporary fault.
func takeThroughFaults(s *syncStore, r storetest.AnyRequest) error {
	r.Bound = 500 * time.Millisecond
	for deadline := time.Now().Add(3 * storetest.Patience); ; {
		err := take(s, r)
		var fault *store.Fault
		if !errors.As(err, &fault) || !fault.Temporary || time.Now().After(deadline) {
			return err
		}
	}
}
