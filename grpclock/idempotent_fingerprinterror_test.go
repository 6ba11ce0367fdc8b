package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
)

// The error of a fingerprint names the option that mends it, and begins once with "reqlock:". It is a
// warning, too.
func TestErrorOfFingerprintNamesItsOption(t *testing.T) {
	t.Parallel()
	broken := core.WithFingerprint(func(*grpclock.Call) ([]byte, error) { return nil, errors.New("broken") })
	wrong := grpclock.Message(func(m fmt.Stringer) string { return m.String() })
	for want, test := range map[string]struct {
		key     grpclock.Key
		options []core.Option
		warned  string
	}{
		"reqlock: key function: WithFingerprint(): broken":                                                     {literal, []core.Option{broken}, "WithFingerprint() refuses requests with key_error, because it fails"},
		"reqlock: key function: the message of /a.B/C is a int and no proto.Message: it needs WithFingerprint": {literal, nil, "the fingerprint refuses requests, because the message of /a.B/C is a int and no proto.Message: it needs"},
		"reqlock: key function: Message(func(fmt.Stringer) string): the message of /a.B/C is a int, not a fmt.Stringer: choose the methods by ByMethod": {
			wrong, nil, "Message(func(fmt.Stringer) string) refuses requests, because the message of /a.B/C is a int, not a fmt.Stringer: choose",
		},
	} {
		var mu sync.Mutex
		var texts, warned []string
		locks := locktest.New(t, core.WithObserver(func(e core.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch e.Kind {
			case core.Refused:
				texts = append(texts, e.Err.Error())
			case core.Warned:
				warned = append(warned, e.Err.Error())
			default:
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
		if len(warned) != 1 || !strings.Contains(warned[0], test.warned) || strings.Contains(warned[0], "broken") {
			t.Errorf("warned %q, want %q", warned, test.warned)
		}
		mu.Unlock()
	}
}
