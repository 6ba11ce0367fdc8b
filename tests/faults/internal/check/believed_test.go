package check

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these tales the server may have freed the key early, as the release of the
// first lease was called, or data was lost: what counts is who believed.
func TestBelieved(t *testing.T) {
	run(t, []testCase{
		{"the release was called early, and the lease relied on until later", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.trouble("cut", 1, 100)
			t.end(history.Release, "a", 10, 50, history.Unavailable).Believed = 30 * ms
			t.grant(2, "k", "b", 11, 12, 11)
			t.release("b", 60, 61)
		}, []string{"believed"}},
		{"told, and released later", func(t *tale) {
			t.trouble("cut", 1, 100)
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 501)
			t.grant(2, "k", "b", 11, 502, 11)
			t.end(history.Release, "a", 600, 601, history.Lost).Believed = 501 * ms
			t.release("b", 610, 611)
		}, nil},
		{"not told, and believed in to the end", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"believed"}},
		{"told when another had it", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 505).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"believed"}},
		{"told a little late of what had ended by itself", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 505)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"killed before another had it", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 400)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"killed when another had it", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.kill(1, 505)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, []string{"believed"}},
		{"stood still when it ended", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.stand(1, 400, 700)
			t.told("a", 705).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"stood still when it ended, and was killed so", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.stand(1, 400, 700)
			t.kill(1, 700)
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 610, 611)
		}, nil},
		{"stood still only after another had it", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.stand(1, 600, 700)
			t.told("a", 705).ValidUntil = 0
			t.grant(2, "k", "b", 11, 502, 11)
			t.release("b", 710, 711).ValidUntil = 1000 * ms
		}, []string{"believed"}},
		{"over before it was granted", func(t *tale) {
			t.trouble("cut", 1, 100)
			t.grant(1, "k", "a", 1, 700, 10)
			t.end(history.Release, "a", 701, 702, history.Lost).Believed = 501 * ms
			t.grant(2, "k", "b", 11, 602, 11)
			t.release("b", 710, 711).ValidUntil = 1000 * ms
		}, nil},
		{"two attempts at once", func(t *tale) {
			t.trouble("cut", 1, 100)
			t.begin(1, "p", "a", 1, 3, 1, history.Rerun)
			t.begin(2, "p", "b", 11, 502, 2, history.Rerun)
			t.commit("a", "x", 520, 521, history.Lost).ValidUntil = 600 * ms
			t.commit("b", "x", 530, 531, history.Done)
		}, []string{"attempts", "believed"}},
	})
}

func TestTold(t *testing.T) {
	run(t, []testCase{
		{"late", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 502+250)
		}, []string{"told"}},
		{"in time, more or less", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 500+250)
		}, nil},
		{"not, and released late", func(t *tale) {
			t.trouble("cut", 1, 100)
			t.grant(1, "k", "a", 1, 3, 10)
			t.end(history.Release, "a", 502+250, 800, history.Lost).Believed = 501 * ms
		}, []string{"told"}},
		{"late, of a renewal that ended later", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.told("a", 2000).ValidUntil = 1900 * ms
		}, nil},
		{"late, when its process stood still", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.stand(1, 400, 1999)
			t.told("a", 2000)
		}, nil},
		{"late, when another process stood still", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.stand(2, 400, 1999)
			t.told("a", 2000)
		}, []string{"told"}},
		{"late, when the machine stood still", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.trouble(Stalled+"-for-a-while", 600, 900)
			t.told("a", 2000)
		}, nil},
		{"late, after the machine stood still", func(t *tale) {
			t.grant(1, "k", "a", 1, 3, 10)
			t.trouble(Stalled, 300, 400)
			t.told("a", 2000)
		}, []string{"told"}},
		{"of a grant that was over when it was heard of", func(t *tale) {
			t.grant(1, "k", "a", 1, 1000, 10)
			t.told("a", 1001)
		}, nil},
	})
}
