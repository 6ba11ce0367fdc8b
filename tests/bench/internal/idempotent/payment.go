package idempotent

import (
	"bytes"
	"fmt"
	"sync/atomic"
)

// A paymentHandler makes the answers of all frameworks. It numbers them, so that an answer
// shows whether it is a replay: a second run of the handler would return another number.
type paymentHandler struct {
	answers atomic.Int64
	filler  []byte
}

const (
	answerStatus = 201
	answerType   = "application/json"

	answerHead = `{"payment":"%016x","note":"`
	answerTail = `"}`
	// smallestAnswer is the size of a payment without a note.
	smallestAnswer = len(answerHead) - len("%016x") + 16 + len(answerTail)
)

// newPaymentHandler returns a handler whose answers have that size.
func newPaymentHandler(size int) *paymentHandler {
	return &paymentHandler{filler: bytes.Repeat([]byte("x"), max(0, size-smallestAnswer))}
}

// answer returns the next answer: JSON.
func (h *paymentHandler) answer() []byte {
	answer := make([]byte, 0, smallestAnswer+len(h.filler))
	answer = fmt.Appendf(answer, answerHead, h.answers.Add(1))
	answer = append(answer, h.filler...)
	return append(answer, answerTail...)
}
