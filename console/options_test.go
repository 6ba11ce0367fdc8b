package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/inspect"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	i := must(inspect.New(rdb))(t)
	someone := console.WithActor(func(*http.Request) string { return "ada" })
	for want, opts := range map[string][]console.Option{
		"WithActions: WithActor":            {console.WithActions(console.Revoke)},
		"WithActions: there is no action":   {console.WithActions(4), someone},
		"WithActions: there is no action 0": {console.WithActions(0), someone},
		"WithActor: ":                       {console.WithActor(nil)},
	} {
		if _, err := console.New(i, opts...); err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := console.New(nil); err == nil {
		t.Error("no Inspector is accepted")
	}
	if _, err := console.New(i, someone, console.WithActions()); err != nil {
		t.Error(err)
	}
}
