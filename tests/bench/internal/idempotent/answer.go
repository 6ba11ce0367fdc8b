package idempotent

import (
	"bytes"
	"fmt"
)

// An answer is the part of a response that a replay must repeat.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// mustBePaid returns an error unless the answer is one of the handler.
func (a answer) mustBePaid(size int) error {
	if a.status != answerStatus || a.contentType != answerType || len(a.body) != size {
		return fmt.Errorf("the answer is not %d %s with %d bytes but %v", answerStatus, answerType, size, a)
	}
	return nil
}

// mustEqual returns an error unless the answer equals the first one.
func (a answer) mustEqual(first answer) error {
	if a.status != first.status || a.contentType != first.contentType || !bytes.Equal(a.body, first.body) {
		return fmt.Errorf("the replay is %v, and the first answer was %v", a, first)
	}
	return nil
}

func (a answer) String() string { return fmt.Sprintf("%d %s %.200s", a.status, a.contentType, a.body) }

// clone returns a copy of the answer.
func (a answer) clone() answer {
	a.body = bytes.Clone(a.body)
	return a
}
