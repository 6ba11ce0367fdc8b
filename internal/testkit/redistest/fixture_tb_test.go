package redistest

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	suite.Main(m)
}

func once(options *redis.Options) {
	options.MaxRetries = -1
}

func awaitKey(t *testing.T, client *redis.Client, key, value string) {
	t.Helper()
	suite.Eventually(t, key+"="+value, func() bool {
		return client.Get(t.Context(), key).Val() == value
	})
}

// recorder is a testing.TB that records how a test ended, instead of ending the test that
// uses it.
type recorder struct {
	testing.TB

	mu     sync.Mutex
	errors []string
	ended  string
}

// ending is what the recorder panics with in place of runtime.Goexit.
type ending struct{}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "fatal: " + fmt.Sprintf(format, args...)
	panic(ending{})
}

func (r *recorder) Skipf(format string, args ...any) {
	r.ended = "skip: " + fmt.Sprintf(format, args...)
	panic(ending{})
}

func watch(t *testing.T, do func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if caught := recover(); caught != nil && caught != (ending{}) {
				panic(caught)
			}
		}()
		do(r)
	}()
	return r.ended
}

func incremented(t *testing.T, client *redis.Client, key string, times int) {
	t.Helper()
	got, err := client.Get(t.Context(), key).Result()
	if err != nil || got != strconv.Itoa(times) {
		t.Fatalf("got %q (%v), want %d", got, err, times)
	}
}
