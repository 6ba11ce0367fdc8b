package conformance

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A kms is a Sealer that a test can switch off. Its answer to a call while it is off is an error, or none
// until the test is over, whatever the context says.
type kms struct {
	core.Sealer
	off  atomic.Bool
	hang chan struct{} // nil: an error
}

// await returns an error if the service is off.
func (k *kms) await() error {
	switch {
	case !k.off.Load():
		return nil
	case k.hang != nil:
		<-k.hang
	}
	return errors.New("the key service is off")
}

func (k *kms) Seal(ctx context.Context, answer, binding []byte) (string, []byte, error) {
	if err := k.await(); err != nil {
		return "", nil, err
	}
	return k.Sealer.Seal(ctx, answer, binding)
}

func (k *kms) Open(ctx context.Context, keyID string, sealed, binding []byte) ([]byte, error) {
	if err := k.await(); err != nil {
		return nil, err
	}
	return k.Sealer.Open(ctx, keyID, sealed, binding)
}

// sealerOf returns a Sealer with the keys of these ids, of which the first one is the current one.
func sealerOf(ids ...string) *core.AESSealer {
	keys := make(map[string][]byte)
	for _, id := range ids {
		keys[id] = bytes.Repeat([]byte(id[:1]), 32)
	}
	sealer, err := core.NewAESSealer(ids[0], keys)
	if err != nil {
		panic(err)
	}
	return sealer
}

// service returns a kms with one key, which hangs while it is off, or returns errors.
func (e *environment) service(hangs bool) (service *kms, options []core.Option) {
	service = &kms{Sealer: sealerOf("kms")}
	limit := core.WithSealTimeout(patience)
	if hangs {
		service.hang = make(chan struct{})
		e.Cleanup(func() { close(service.hang) })
		limit = core.WithSealTimeout(500 * time.Millisecond)
	}
	return service, []core.Option{core.WithSealer(service), limit}
}

// stored returns the stored answer of each record.
func (e *environment) stored() map[string]string {
	e.Helper()
	found := make(map[string]string)
	for _, name := range e.names(e.Context(), ":r") {
		if answer, isAnswered := storetest.RecordAt(e, e.rdb, name)["p"]; isAnswered {
			found[name] = answer
		}
	}
	return found
}

// wantSealed fails the test unless the one stored answer is sealed with the key, in a step of 256 bytes,
// and does not contain the text.
func (e *environment) wantSealed(keyID, text string) {
	e.Helper()
	const nonceAndTag = 28
	for _, answer := range e.stored() {
		head, body, _ := strings.Cut(answer, keyID)
		if len(head) != len("\x00sealed")+2 || (len(body)-nonceAndTag)%256 != 0 || strings.Contains(answer, text) {
			e.Errorf("the stored answer is %q", answer)
		}
	}
	if n := len(e.stored()); n != 1 {
		e.Errorf("%d answers are stored", n)
	}
}

// wantUnopened waits for the event of a copy that was refused because its answer does not open. It fails
// the test unless the event has the id of the key, and not the text.
func (e *environment) wantUnopened(n int, kind error, keyID, text string) {
	e.Helper()
	var found []core.Event
	suite.Eventually(e.T, "the copy is refused", func() bool {
		found, _ = e.events.of(core.Refused)
		return len(found) == n
	})
	if err := found[n-1].Err; !errors.Is(err, kind) || !strings.Contains(err.Error(), `"`+keyID+`"`) || strings.Contains(err.Error(), text) {
		e.Errorf("refused: %v", err)
	}
}
