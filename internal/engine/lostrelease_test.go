package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The lease is lost while its holder runs, and a server that restores old data
// holds the token again. The release of such a hold returns at once, because the
// loss is known. The engine frees the key as soon as the store replies.
func TestReleaseAfterLossDoesNotWaitForTheStore(t *testing.T) {
	tests := []struct {
		name    string
		request Request
		finish  func(h *Hold) (Loss, error)
		want    Loss
	}{
		{
			"a lock", request(0),
			func(h *Hold) (Loss, error) { return h.Release(context.Background()) }, Taken,
		},
		{
			// The loss that End returns is about the ending alone.
			"an attempt that is interrupted", attempt("f", 0),
			func(h *Hold) (Loss, error) { return h.End(context.Background(), Interrupt, nil) }, NotLost,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], test.request)
				p.server.set("k", "", 0)
				<-h.Context().Done()
				p.server.set("k", h.Token(), time.Hour)
				const outage = time.Second
				failsFor(p.stores[0], outage, "release")
				begun := time.Now()
				loss, err := test.finish(h)
				if took := time.Since(begun); loss != test.want || err != nil || took > 0 {
					t.Errorf("loss %v, error %v after %v, want %v at once", loss, err, took, test.want)
				}
				time.Sleep(outage + longestPause)
				synctest.Wait()
				if tries := p.stores[0].tried("release"); tries < 2 {
					t.Errorf("%d releases sent, want one more after the outage", tries)
				}
				if value := p.server.value("k"); value != "" {
					t.Error("the key is not free after the outage")
				}
				p.rest(t)
			})
		})
	}
}
