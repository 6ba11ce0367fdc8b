package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A cluster of one node takes plain clients and clients of a cluster. They receive hints by
// different commands, and take turns all the same.
func TestClientsOfDifferentKindsTakeTurns(t *testing.T) {
	t.Parallel()
	node := redistest.StartMasters(t, 1)[0]
	setUser(t, node.Client(t), "nosharded", redistest.Rights+" "+redistest.ClusterRights, "+ssubscribe")
	plain := func(t *testing.T) redis.UniversalClient { return node.Client(t) }
	cluster := func(t *testing.T, change ...func(*redis.ClusterOptions)) redis.UniversalClient {
		t.Helper()
		options := &redis.ClusterOptions{Addrs: []string{node.Addr()}}
		for _, change := range change {
			change(options)
		}
		rdb := redis.NewClusterClient(options)
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	whole := func(t *testing.T) redis.UniversalClient { return cluster(t) }
	unsharded := func(t *testing.T) redis.UniversalClient { // its user may not use sharded channels
		return cluster(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "nosharded", "secret" })
	}
	for _, test := range []struct {
		name          string
		crowd, others func(t *testing.T) redis.UniversalClient
	}{
		{"cluster clients beside plain ones", plain, whole},
		{"plain clients beside those of a cluster", whole, plain},
		{"a user without +ssubscribe beside plain clients", plain, unsharded},
		{"a user without +ssubscribe beside cluster clients", whole, unsharded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			testTurnsInACrowd(t, strings.ReplaceAll(test.name, " ", "-"), test.crowd, test.others)
		})
	}
}

// Check reports clients of the other kind than the server, and rights without which a process
// cannot notify waiters with clients of the other kind.
func TestCheckAdvisesOnKindsOfClients(t *testing.T) {
	t.Parallel()
	node := redistest.StartMasters(t, 1)[0]
	admin := node.Client(t)
	const both = redistest.Rights + " " + redistest.ClusterRights
	for i, test := range []struct {
		rights, missing string
		isCluster       bool
		warned, other   string // texts that the warning has, and does not have
	}{
		{both + " +info", "", false, "redis.NewClusterClient", "+spublish"},
		{redistest.Rights + " +info", "", false, "+spublish and &reqlock:* and &{reqlock:*", "+publish"},
		{both + " +info", "+info", false, "", ""},
		{both, "", true, "", ""},
		{both, "+publish", true, "+publish and &reqlock:*", "+spublish"},
		{both, "&reqlock:*", true, "+publish and &reqlock:*", "+spublish"},
	} {
		user := fmt.Sprint("alice", i)
		setUser(t, admin, user, test.rights, test.missing)
		rdb := redis.UniversalClient(node.Client(t, as(user, "secret"), deadlines))
		if test.isCluster {
			rdb = redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{node.Addr()}, Username: user, Password: "secret", ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { _ = rdb.Close() })
		}
		events := &recorder{}
		if err := newLocker(t, rdb, patient, core.WithObserver(events.record)).Check(t.Context()); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		warned := events.of(core.Warned)
		switch {
		case test.warned == "" && len(warned) == 0:
		case len(warned) != 1 || test.warned == "":
			t.Errorf("%+v: %v", test, warned)
		case !strings.Contains(warned[0].Err.Error(), test.warned) || strings.Contains(warned[0].Err.Error(), test.other):
			t.Errorf("%+v: %v", test, warned[0].Err)
		}
	}
}

// testTurnsInACrowd lets a crowd of processes keep a key busy. Each of three processes with
// the other kind of client must get the key by a hand-over, which needs a hint and a place in
// the line.
func testTurnsInACrowd(t *testing.T, key string, crowd, others func(t *testing.T) redis.UniversalClient) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	crowded := &recorder{}
	ended := make(chan struct{})
	const processes, callers = 3, 2
	for range processes {
		locks := newLocker(t, crowd(t), core.WithObserver(crowded.record))
		for range callers {
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					_ = locks.Do(ctx, key, func(context.Context) error { return nil })
				}
			}()
		}
	}
	suite.Eventually(t, "processes of the crowd take turns", func() bool {
		handed := 0
		for _, event := range crowded.of(core.Acquired) {
			if event.Handover == core.Handed {
				handed++
			}
		}
		return handed >= 2*processes
	})
	events := &recorder{}
	served := make(chan error)
	for range 3 {
		locks := newLocker(t, others(t), core.WithObserver(events.record))
		go func() { served <- locks.Do(ctx, key, func(context.Context) error { return nil }) }()
	}
	for range 3 {
		noError(t, suite.Receive(t, "the others are served", served))
	}
	stop()
	for range processes * callers {
		<-ended
	}
	for _, event := range events.of(core.Acquired) {
		if event.Handover != core.Handed {
			t.Errorf("the lock was granted as %v", event.Handover)
		}
	}
}
