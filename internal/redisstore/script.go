package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names a script by its SHA-1.
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The parts that scripts share, and the scripts.
var (
	//go:embed lease.lua
	leasePart string
	//go:embed line.lua
	linePart string
	//go:embed fence.lua
	fencePart string

	//go:embed take.lua
	takeSource string
	//go:embed enqueue.lua
	enqueueSource string
	//go:embed renew.lua
	renewSource string
	//go:embed release.lua
	releaseSource string
)

// scripts holds each script with its digest.
type scripts struct{ take, enqueue, renew, release script }

func newScripts() scripts {
	return scripts{
		take:    newScript(takeSource),
		enqueue: newScript(leasePart, linePart, fencePart, enqueueSource),
		renew:   newScript(leasePart, fencePart, renewSource),
		release: newScript(leasePart, linePart, releaseSource),
	}
}

// A script is a Lua source and the digest under which a server knows it.
type script struct{ source, sha string }

// newScript joins the parts to one script.
func newScript(parts ...string) script {
	source := strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names a script by its SHA-1.
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run calls the script by its digest, and by its source where the server does
// not know it: after a restart, a failover or SCRIPT FLUSH. A server that
// answers NOSCRIPT has run nothing, so this is no second send.
func (s script) run(ctx context.Context, rdb redis.UniversalClient, keys []string, args ...any) (any, error) {
	value, err := sendOnce(ctx, rdb, 3, evalArgs("evalsha", s.sha, keys, args)...)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return sendOnce(ctx, rdb, 3, evalArgs("eval", s.source, keys, args)...)
	}
	return value, err
}

// evalArgs lays out EVAL or EVALSHA.
func evalArgs(command, body string, keys []string, args []any) []any {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, command, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return append(all, args...)
}
