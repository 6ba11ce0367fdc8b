package core_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/reqlock/reqlock/core"
)

// An answer that was sealed with the old key opens after the new one has become the current key.
func ExampleNewAESSealer() {
	locks, end := newExample()
	defer end()
	ctx := context.Background()
	keys := map[string][]byte{"2026-08": make([]byte, 32), "2026-11": make([]byte, 32)} // from your secret store
	for _, key := range keys {
		_, _ = rand.Read(key)
	}

	before, err := core.NewAESSealer("2026-08", keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt, err := locks.With(core.WithSealer(before)).Begin(ctx, "payment 7", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = attempt.Commit(ctx, []byte("paid"))

	after, err := core.NewAESSealer("2026-11", keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := locks.With(core.WithSealer(after)).Begin(ctx, "payment 7", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, replayed := again.Replay()
	fmt.Println(string(answer), replayed)
	// Output: paid true
}
