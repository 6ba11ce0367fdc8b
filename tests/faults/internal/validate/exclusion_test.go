package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these histories the server may free the key early, because a release was called or
// data was lost. Only the time until which the holder relies on the lease counts.
func TestMutualExclusion(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"the release was called early, and the lease relied on until later", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.disrupt("cut", 1, 100)
			t.end(history.Release, "a", 10, 50, history.Unavailable).ReliedUntil = 30 * ms
			t.grant(2, "k", "b", 11, 12, 11)
			t.release("b", 60, 61)
		}, []string{"mutual-exclusion"}},
		{"notified, and released later", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 501)
			t.grant(2, "k", "b", 11, 502, 11)
			t.end(history.Release, "a", 600, 601, history.Lost).ReliedUntil = 501 * ms
			t.release("b", 610, 611)
		}, nil},
		{"not notified, and relied on to the end", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"mutual-exclusion"}},
		{"notified when another client held it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 505).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"mutual-exclusion"}},
		{"notified a little late of a lease that had ended by itself", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 505)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"killed before another had it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 400)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"killed when another had it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 505)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"mutual-exclusion"}},
		{"was paused when it ended", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.pause(1, 400, 700)
			t.leaseEnd("a", 705).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"was paused when it ended, and was killed so", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.pause(1, 400, 700)
			t.kill(1, 700)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"was paused only after another had it", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.pause(1, 600, 700)
			t.leaseEnd("a", 705).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 710, 711).ValidUntil = 1000 * ms
		}, []string{"mutual-exclusion"}},
		{"over before it was granted", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.grant(1, "k", "a", 1, 700, 10)
			t.end(history.Release, "a", 701, 702, history.Lost).ReliedUntil = 501 * ms
			t.grant(2, "k", "b", 11, 602, 11)
			t.release("b", 710, 711).ValidUntil = 1000 * ms
		}, nil},
		{"two attempts at once", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.begin(1, "p", "a", 1, 3, 1, history.Rerun)
			t.begin(2, "p", "b", 11, 502, 2, history.Rerun)
			t.commit("a", "x", 520, 521, history.Lost).ValidUntil = 600 * ms
			t.commit("b", "x", 530, 531, history.Done)
		}, []string{"attempts", "mutual-exclusion"}},
	})
}

func TestLeaseEnd(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"late", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 502+250)
		}, []string{"lease-end"}},
		{"in time, more or less", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 500+250)
		}, nil},
		{"not, and released late", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.grant(1, "k", "a", 1, 3, 10)
			t.end(history.Release, "a", 502+250, 800, history.Lost).ReliedUntil = 501 * ms
		}, []string{"lease-end"}},
		{"late, of a renewal that ended later", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.leaseEnd("a", 2000).ValidUntil = 1900 * ms
		}, nil},
		{"late, when its process was paused", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.pause(1, 400, 1999)
			t.leaseEnd("a", 2000)
		}, nil},
		{"late, when another process was paused", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.pause(2, 400, 1999)
			t.leaseEnd("a", 2000)
		}, []string{"lease-end"}},
		{"late, when the machine was paused", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.disrupt(Stalled+"-for-a-while", 600, 900)
			t.leaseEnd("a", 2000)
		}, nil},
		{"late, after the machine was paused", func(t *builder) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.disrupt(Stalled, 300, 400)
			t.leaseEnd("a", 2000)
		}, []string{"lease-end"}},
		{"of a grant that was over when it returned", func(t *builder) {
			t.grant(1, "k", "a", 1, 1000, 10)
			t.leaseEnd("a", 1001)
		}, nil},
	})
}
