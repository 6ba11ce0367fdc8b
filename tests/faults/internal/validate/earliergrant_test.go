package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// releaseAll adds a Release that succeeds of each lease.
func (t *builder) releaseAll(from, to int64, leases ...string) {
	for _, lease := range leases {
		t.release(lease, from, to)
	}
}

// giveUp adds a Lock of a shared lease whose wait ends.
func (t *builder) giveUp(process int, key string, limit int, from, to int64) {
	op := t.call(process, history.Lock, key, from, to, history.WaitTimeout)
	op.Limit, op.Wait = limit, (to-from)*ms
}

// validFrom returns until when a lease is valid whose confirmation was sent at a time.
func validFrom(sent int64) int64 { return (sent + ttl) * ms }

// The server may grant a shared lease before the command is sent that confirms it, and before the
// call that gets it.
func TestSharedLeasesGrantedEarlier(t *testing.T) {
	t.Parallel()
	const two = 2
	runSharedCases(t, []testCase{
		{"assigned by a release, and confirmed after others were granted", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 30).ValidUntil = validFrom(28)
			t.release("a", 20, 22)
			t.share(4, "k", "d", two+1, 23, 25)
			t.releaseAll(40, 41, "b", "c", "d")
		}, nil},
		{"two assigned by a release, and confirmed after others were granted", func(t *builder) {
			t.share(1, "k", "a", 0, 1, 3)
			t.share(2, "k", "b", two, 5, 30).ValidUntil = validFrom(28)
			t.share(3, "k", "c", two, 6, 31).ValidUntil = validFrom(28)
			t.release("a", 20, 22)
			t.share(4, "k", "d", unlimited, 23, 25)
			t.share(5, "k", "e", unlimited, 24, 29)
			t.releaseAll(40, 41, "b", "c", "d", "e")
		}, nil},
		{"confirmed after others were granted, although there was no room since the call", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.release("a", 10, 12)
			t.share(4, "k", "d", two+1, 13, 15)
			t.share(3, "k", "c", two, 16, 30).ValidUntil = validFrom(28)
			t.releaseAll(40, 41, "b", "c", "d")
		}, []string{"linearizability"}},
		{"granted to an earlier caller of its process, which got another one", func(t *builder) {
			t.share(3, "k", "b", two, 2, 12)
			t.share(4, "k", "c", two+1, 13, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = validFrom(10)
			t.releaseAll(40, 41, "b", "c", "d")
		}, nil},
		{"granted to an earlier caller of its process, which gave up", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.giveUp(3, "k", two, 5, 11)
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = validFrom(10)
			t.releaseAll(40, 41, "a", "c", "d")
		}, nil},
		{"granted to the first of two earlier callers of its process", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.giveUp(3, "k", two, 5, 9)
			t.giveUp(3, "k", two, 200, 204)
			t.share(4, "k", "c", two+1, 8, 9)
			t.share(3, "k", "d", two, 270, 272).ValidUntil = validFrom(10)
			t.releaseAll(340, 341, "a", "c", "d")
		}, nil},
		{"valid since before its call, although the earlier caller of its process gave up long before", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.giveUp(3, "k", two, 5, 11)
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 290, 292).ValidUntil = validFrom(10)
			t.releaseAll(340, 341, "a", "c", "d")
		}, []string{"linearizability"}},
		{"valid since before its call, although the earlier caller of its process had another limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(3, "k", "b", two+1, 5, 11)
			t.release("b", 12, 13)
			t.share(4, "k", "c", two+1, 14, 15)
			t.share(3, "k", "d", two, 16, 17).ValidUntil = validFrom(10)
			t.releaseAll(40, 41, "a", "c", "d")
		}, []string{"linearizability"}},
		{"confirmed long after others were granted", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 430).ValidUntil = validFrom(428)
			t.release("a", 20, 22)
			t.share(4, "k", "d", two+1, 23, 25)
			t.releaseAll(440, 441, "b", "c", "d")
		}, []string{"linearizability"}},
		{"confirmed again long after others were granted, since the first confirmation had no reply", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 430).ValidUntil = validFrom(428)
			t.disrupt(LostReply+"is lost", 30, 40)
			t.release("a", 20, 22)
			t.share(4, "k", "d", two+1, 23, 25)
			t.releaseAll(440, 441, "b", "c", "d")
		}, nil},
		{"an exclusive lease refused beside one that is granted to the next caller of the process", func(t *builder) {
			t.share(3, "k", "b", two, 2, 4)
			t.release("b", 5, 6)
			t.refuse(4, "k", 0, 10, 11)
			t.share(3, "k", "d", two, 12, 14).ValidUntil = validFrom(9)
			t.release("d", 20, 21)
		}, nil},
		{"valid since before its call, although no earlier call of its process waited", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = validFrom(10)
			t.releaseAll(40, 41, "a", "c", "d")
		}, []string{"linearizability"}},
	})
}
