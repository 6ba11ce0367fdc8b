package topology

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// cluster embeds a client, as wrappers do.
type cluster struct{ *redis.ClusterClient }

func TestWrapperIsCheckedAsTheClientItEmbeds(t *testing.T) {
	replicas := redis.NewClusterClient(&redis.ClusterOptions{ReadOnly: true})
	t.Cleanup(func() { _ = replicas.Close() })
	if err := CheckClient(cluster{replicas}); !errors.Is(err, errReplicas) {
		t.Errorf("a client of replicas: %v", err)
	}
}

// Without deadlines an inline batch may block its caller for too long.
func TestCannotRunInlineWithoutDeadlines(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*redis.Options){
		"of reads":  func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -2, time.Second },
		"of writes": func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = time.Second, -2 },
		"at all":    func(o *redis.Options) { o.ContextTimeoutEnabled = false },
	} {
		t.Run(name, func(t *testing.T) {
			options := &redis.Options{ContextTimeoutEnabled: true}
			configure(options)
			rdb := redis.NewClient(options)
			t.Cleanup(func() { _ = rdb.Close() })
			if CanRunInline(rdb) {
				t.Error("it can run inline")
			}
		})
	}
}
