package command

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestIsOutage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"NOAUTH Authentication required.":                                                   true,
		"ERR Protocol error: unauthenticated multibulk length":                              true, // of a long command
		"NOPERM User u has no permissions to run the 'evalsha' command":                     true,
		"ERR The user executing the script can't run this command or subcommand script: ab": true,
		"ERR Error running script: @user_script: 1: Unknown Redis command called from":      true,
		"OOM command not allowed when used memory > 'maxmemory'.":                           true,
		"LOADING Redis is loading the dataset in memory":                                    true,
		"MOVED 12 10.0.0.1:6379":                                                            true, // to a client of one server
		"WRONGTYPE Operation against a key holding the wrong kind of value":                 false,
		"TRYAGAIN Multiple keys request during rehashing of slot":                           false,
		"ERR refused": false,
	} {
		if got := IsOutage(storetest.ServerError(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	for _, err := range []error{ErrNoReply, redis.ErrClosed} {
		if !IsOutage(err) {
			t.Errorf("%v is no outage", err)
		}
	}
	for _, err := range []error{UnexpectedReply(1), Answered(ErrNoReply)} {
		if IsOutage(err) {
			t.Errorf("%v is an outage", err)
		}
	}
}
