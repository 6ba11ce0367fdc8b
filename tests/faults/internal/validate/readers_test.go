package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	bad := []string{"linearizability", "mutual-exclusion"}
	runSharedCases(t, []testCase{
		{"readers beside each other, then a writer", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.grant(3, "k", "w", 3, 32, 0)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("w", 40, 41)
			t.share(4, "k", "c", unlimited, 33, 42)
			t.release("c", 43, 44)
		}, nil},
		{"a writer beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.grant(3, "k", "w", 3, 10, 0)
			t.release("a", 20, 22)
			t.release("w", 40, 41)
		}, bad},
		{"a reader beside a writer", func(t *builder) {
			t.grant(3, "k", "w", 1, 3, 0)
			t.share(1, "k", "a", unlimited, 5, 10)
			t.release("a", 20, 22)
			t.release("w", 40, 41)
		}, bad},
		{"a writer after one of two readers", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.grant(3, "k", "w", 3, 25, 0)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("w", 40, 41)
		}, bad},
		{"a writer after the last reader died and expired", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.kill(2, 10)
			t.grant(3, "k", "w", 300, 503, 0)
			t.release("a", 20, 22)
			t.release("w", 510, 511)
		}, nil},
		{"a writer before the last reader, which died, expired", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.kill(2, 10)
			t.grant(3, "k", "w", 300, 501, 0)
			t.release("a", 20, 22)
			t.release("w", 510, 511)
		}, []string{"linearizability"}},
		{"a permit beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", 1, 4, 5)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"linearizability"}},
		{"a reader beside a permit", func(t *builder) {
			t.share(2, "k", "b", 1, 1, 3)
			t.share(1, "k", "a", unlimited, 4, 5)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, nil},
		{"a reader refused beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("a", 20, 22)
		}, []string{"linearizability"}},
		{"a reader refused beside a writer", func(t *builder) {
			t.grant(1, "k", "w", 1, 3, 0)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("w", 20, 22)
		}, nil},
		{"a reader refused behind a writer that waits", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.grant(3, "k", "w", 4, 24, 0)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("a", 20, 22)
			t.release("w", 30, 31)
		}, nil},
		{"a reader refused behind the place of calls that were served together", func(t *builder) {
			t.share(1, "k", "a", 2, 1, 3)
			t.share(1, "k", "b", 2, 2, 20).Episode = "a"
			t.release("a", 19, 20)
			t.refuse(2, "k", unlimited, 25, 26)
			t.release("b", 30, 31)
		}, nil},
		{"a reader refused long after calls were served together", func(t *builder) {
			t.share(1, "k", "a", 2, 1, 3)
			t.share(1, "k", "b", 2, 2, 20).Episode = "a"
			t.release("a", 19, 20)
			t.refuse(2, "k", unlimited, 290, 291)
			t.release("b", 300, 301)
		}, []string{"linearizability"}},
		{"a reader refused behind a waiter that died", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3).ValidUntil = 9000 * ms
			t.call(3, history.Lock, "k", 4, 0, history.None)
			t.kill(3, 100)
			t.refuse(2, "k", unlimited, 2000, 2001)
			t.release("a", 3000, 3001).ValidUntil = 9000 * ms
		}, nil},
		{"a reader refused behind a waiter that died long ago", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3).ValidUntil = 9000 * ms
			t.call(3, history.Lock, "k", 4, 0, history.None)
			t.kill(3, 100)
			t.refuse(2, "k", unlimited, 2201, 2202)
			t.release("a", 3000, 3001).ValidUntil = 9000 * ms
		}, []string{"linearizability"}},
	})
}
