package idempotent

import (
	"bytes"
	"fmt"
	"sync/atomic"
)

// A desk is what is behind the handlers of all frameworks: it numbers its
// answers. So an answer tells whether it is a replay: a handler that ran again
// would give another one.
type desk struct {
	answers atomic.Int64
	filler  []byte
}

const (
	answerStatus = 201
	answerType   = "application/json"

	answerHead = `{"payment":"%016x","note":"`
	answerTail = `"}`
	// smallestAnswer is that of a payment without a note.
	smallestAnswer = len(answerHead) - len("%016x") + 16 + len(answerTail)
)

// newDesk returns a desk whose answers have so many bytes.
func newDesk(size int) *desk {
	return &desk{filler: bytes.Repeat([]byte("x"), max(0, size-smallestAnswer))}
}

// answer returns the next answer: JSON.
func (d *desk) answer() []byte {
	answer := make([]byte, 0, smallestAnswer+len(d.filler))
	answer = fmt.Appendf(answer, answerHead, d.answers.Add(1))
	answer = append(answer, d.filler...)
	return append(answer, answerTail...)
}
