package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1.
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed take.lua
	takeSource string
	//go:embed ask.lua
	askSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string
)

// scripts holds each script with its digest.
type scripts struct{ take, ask, renew, release script }

func newScripts() scripts {
	return scripts{
		take:    newScript(takeSource),
		ask:     newScript(askSource),
		renew:   newScript(renewSource),
		release: newScript(releaseSource),
	}
}

// A script is a Lua source and the digest under which a server knows it.
type script struct{ source, sha string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names a script by its SHA-1.
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run calls the script by its digest, and by its source where the server does
// not know it: after a restart, a failover or SCRIPT FLUSH. A server that
// answers NOSCRIPT has run nothing, so this is no second send.
func (s script) run(ctx context.Context, rdb redis.UniversalClient, key string, args ...any) (any, error) {
	value, err := sendOnce(ctx, rdb, 3, evalArgs("evalsha", s.sha, key, args)...)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return sendOnce(ctx, rdb, 3, evalArgs("eval", s.source, key, args)...)
	}
	return value, err
}

// evalArgs lays out EVAL or EVALSHA for a script of one key.
func evalArgs(command, body, key string, args []any) []any {
	return append([]any{command, body, 1, key}, args...)
}
