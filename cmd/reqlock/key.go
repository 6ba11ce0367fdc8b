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

// A request is what a client sent, apart from the parts of the key.
type request struct{ method, route string }

// addRequest adds the flags of a request.
func addRequest(f *flag.FlagSet) *request {
	r := &request{}
	f.StringVar(&r.method, "method", "", "the `METHOD` of the HTTP request; none for gRPC")
	f.StringVar(&r.route, "route", "", "the `ROUTE` as the framework has it, such as 'POST /payments' of net/http, or the full method of gRPC")
	return r
}

// key returns the endpoint key of the request.
func (r *request) key(parts []string) (string, error) {
	key, err := core.EndpointKey(r.method, r.route, parts...)
	if err != nil {
		return "", misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: "))
	}
	return key, nil
}

// beginKey adds the flags of key.
func beginKey(f *flag.FlagSet) action {
	request := addRequest(f)
	return func(_ context.Context, c *call) error {
		key, err := request.key(c.args)
		if err != nil {
			return err
		}
		if err := keyspace.CheckPrefix(c.prefix); err != nil {
			return misuse("%v", err)
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
