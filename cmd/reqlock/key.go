package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

// A keyView is the key of a request as a line of --json.
type keyView struct {
	EndpointKey string `json:"endpoint_key"`
	Digest      string `json:"digest"`
	Name        string `json:"name"`
}

// beginKey adds the flags of key.
func beginKey(f *flag.FlagSet) action {
	method := f.String("method", "", "the `METHOD` of the HTTP request; none for gRPC")
	route := f.String("route", "", "the `ROUTE` as the framework has it, such as 'POST /payments' of net/http, or the full method of gRPC")
	return func(_ context.Context, c *call) error {
		key, err := core.EndpointKey(*method, *route, c.args...)
		if err == nil {
			err = keyspace.CheckPrefix(c.prefix)
		}
		if err != nil {
			return misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: "))
		}
		v := keyView{key, digestOf(key), keyspace.New(c.prefix).Lock(attemptMark + key)}
		if c.json {
			return c.printJSON(v)
		}
		pairs(c.out, [2]string{"endpoint_key", v.EndpointKey}, [2]string{"digest", v.Digest}, [2]string{"name in Redis", quoted(v.Name)})
		return nil
	}
}

// attemptMark begins the key of the lock of an idempotent request, as in core.
const attemptMark = "i:"

// digestOf returns the digest of the key of a request, as lines of the log have it.
func digestOf(endpointKey string) string {
	sum := sha256.Sum256([]byte(attemptMark + endpointKey))
	return hex.EncodeToString(sum[:6])
}
