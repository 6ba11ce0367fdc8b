package inspect_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// An operator finds out who holds a lock, and ends the lease.
func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	// A service holds a lock.
	locks := core.Must(core.New(rdb))
	defer locks.Close(ctx)
	lease, err := locks.Lock(ctx, "account:42")
	if err != nil {
		panic(err)
	}

	i, err := inspect.New(rdb)
	if err != nil {
		panic(err)
	}
	lock, err := i.Lock(ctx, "account:42")
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Key, lock.Key.Raw(), lock.Holders[0].Kind, lock.Waiting)

	if err := i.Revoke(ctx, lock); err != nil {
		panic(err)
	}
	lock, err = i.Lock(ctx, lock.Key.Name())
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Holders[0].Kind)
	fmt.Println(lease.Release(ctx))
	// Output:
	// 38dbcc9b3c91 account:42 process 0
	// revoked
	// reqlock: lease lost
}
