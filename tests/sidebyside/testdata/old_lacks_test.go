package sidebyside

import (
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/nethttplock"
)

// The old tree can neither seal an answer, nor leave it out, nor detach a lease.
var sealed, once []nethttplock.Option

func detached(*redis.Client) http.Handler { return http.NotFoundHandler() }
