package inspect_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/inspect"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	for want, option := range map[string]inspect.Option{
		"WithLimit: 0":             inspect.WithLimit(0),
		"WithLimit: 1000001":       inspect.WithLimit(1_000_001),
		"WithPause: 0s":            inspect.WithPause(0),
		"WithRetention":            inspect.WithRetention(0),
		"WithObserver":             inspect.WithObserver(nil),
		"WithPrefix: the prefix h": inspect.WithPrefix("{"),
	} {
		if _, err := inspect.New(rdb, option); err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for _, client := range []redis.UniversalClient{nil, ring} {
		if _, err := inspect.New(client); err == nil {
			t.Errorf("%T is accepted", client)
		}
	}
}
