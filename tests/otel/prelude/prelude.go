// Package prelude declares the free names of the snippets with OpenTelemetry.
package prelude

import "github.com/redis/go-redis/v9"

//nolint:unused // snippets use them
var (
	traced *redis.Client
	isLock func(redis.Cmder) bool
)
