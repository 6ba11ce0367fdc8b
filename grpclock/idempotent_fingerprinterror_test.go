package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
)

// The error of a fingerprint names the option that mends it, and begins once with "reqlock:".
func TestErrorOfFingerprintNamesItsOption(t *testing.T) {
	t.Parallel()
	broken := core.WithFingerprint(func(*grpclock.Call) ([]byte, error) { return nil, errors.New("broken") })
	wrong := grpclock.Message(func(m fmt.Stringer) string { return m.String() })
	for want, test := range map[string]struct {
		key     grpclock.Key
		options []core.Option
	}{
		"reqlock: key function: WithFingerprint(): broken":                                                     {literal, []core.Option{broken}},
		"reqlock: key function: the message of /a.B/C is a int and no proto.Message: it needs WithFingerprint": {literal, nil},
		"reqlock: key function: Message(func(fmt.Stringer) string): the message of /a.B/C is a int, not a fmt.Stringer: choose the methods by ByMethod": {
			wrong, nil,
		},
	} {
		var mu sync.Mutex
		var texts []string
		locks := locktest.New(t, core.WithObserver(func(e core.Event) {
			if e.Kind == core.Refused {
				mu.Lock()
				defer mu.Unlock()
				texts = append(texts, e.Err.Error())
			}
		}))
		interceptor := grpclock.IdempotentUnaryServerInterceptor(locks.Locker, test.key, test.options...)
		_, err := interceptor(t.Context(), 7, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) {
			t.Error("the handler ran")
			return nil, nil
		})
		mu.Lock()
		if err == nil || !slices.Equal(texts, []string{want}) {
			t.Errorf("%v, events %q, want %q", err, texts, want)
		}
		mu.Unlock()
	}
}
