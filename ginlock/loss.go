package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
)

// A state is what c has before its handlers run. A middleware behind may leave another writer in
// c, which must not be used any more.
type state struct {
	writer   gin.ResponseWriter
	encoding []string
	failures int
}

// contentEncoding is the name of the header of a middleware that compresses.
const contentEncoding = "Content-Encoding"

func stateOf(c *gin.Context) state {
	return state{c.Writer, c.Writer.Header()[contentEncoding], len(c.Errors)}
}

// lossOf is adapter.LossOf for the last error that the handlers have added to c, if Gin would
// send an empty 200. ctx is the context of the lease.
func (s state) lossOf(ctx context.Context, c *gin.Context) error {
	if s.writer.Written() || s.writer.Status() != http.StatusOK {
		return nil
	}
	var left error
	if len(c.Errors) > s.failures {
		left = c.Errors.Last().Err
	}
	return adapter.LossOf(ctx, left)
}

// answerLoss answers for handlers that have given no answer because the lock was lost. Behind an
// Idempotent, that one answers, for which the loss is the last one of c.Errors.
func (s state) answerLoss(c *gin.Context, loss error, entry adapter.Entry) {
	c.Errors = append(c.Errors, &gin.Error{Err: loss, Type: gin.ErrorTypePrivate})
	if entry.IsInside() {
		return
	}
	delete(s.writer.Header(), contentEncoding) // of a middleware behind, whose writer is gone
	if s.encoding != nil {
		s.writer.Header()[contentEncoding] = s.encoding
	}
	adapter.WriteRefusal(s.writer, loss)
}
