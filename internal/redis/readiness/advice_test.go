package readiness

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The replies are those of versions of Redis that the other tests do not use.
func TestAdviceOnRepliesOfOtherVersions(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	c := NewCheck(rdb, "reqlock:", 0, command.Replicas{}, new(Passed))
	const keys, channel = "~reqlock:* and ~{reqlock:*", "&reqlock:*"
	for reply, want := range map[string]string{
		"NOPERM User alice has no permissions to run the 'evalsha' command":                                                                "+evalsha",
		"NOPERM this user has no permissions to run the 'get' command or its subcommand":                                                   "+get",
		"ERR ACL failure in script: User alice has no permissions to run the 'lpos' command script: f, on @user_script:3.":                 "+lpos",
		"ERR Error running script (call to f_1): @user_script:3: The user executing the script can't run this command or subcommand":       "all commands",
		"NOPERM No permissions to access a key":                                                                                            keys,
		"ERR ACL failure in script: No permissions to access a key script: f, on @user_script:3.":                                          keys,
		"ERR Error running script: The user executing the script can't access at least one of the keys mentioned in the command arguments": keys,
		"NOPERM No permissions to access a channel":                                                                                        channel,
		"ERR Error running script: @user_script: 3: Unknown Redis command called from Lua script":                                          "redis 7.0",
		"ERR Unknown Redis command called from script script: f, on @user_script:3.":                                                       "redis 7.0",
		"ERR Unknown command called from script script: f, on @user_script:3.":                                                             "redis 7.0",
		"ERR unknown command 'LPOS', with args beginning with: 'alice's key' ":                                                             "LPOS",
		"MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.":                                "stop-writes-on-bgsave-error",
		"LOADING Redis is loading the dataset in memory":                                                                                   "wait",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                                                 "connect to the master",
		"ERR max number of clients reached":                                                                                                "maxclients",
		"ERR a proxy has its own text":                                                                                                     "ERR a proxy has its own text",
	} {
		err := c.finding(t.Context(), "", command.Sanitize(storetest.ServerError(reply)))
		var cause redis.Error
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "alice") || !errors.As(err, &cause) || cause.Error() != command.RedactUser(reply) {
			t.Errorf("%q: got %q with %v, want %q", reply, err, cause, want)
		}
	}
}
