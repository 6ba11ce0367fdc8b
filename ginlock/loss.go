package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
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

// lossOf is httpattempt.LossOf for the last error that the handlers have added to c, if Gin would
// send an empty 200. ended is the cause with which the context of the lease has ended, or nil.
func (s state) lossOf(ended error, c *gin.Context) error {
	if s.writer.Written() || s.writer.Status() != http.StatusOK {
		return nil
	}
	var left error
	if len(c.Errors) > s.failures {
		left = c.Errors.Last().Err
	}
	return httpattempt.LossOf(ended, left)
}

// answerLoss answers for handlers that have given no answer because the lock was lost. Behind an
// Idempotent, that one answers, for which the loss is the last one of c.Errors.
func (s state) answerLoss(c *gin.Context, loss error, pass *httpattempt.Pass) {
	c.Errors = append(c.Errors, &gin.Error{Err: loss, Type: gin.ErrorTypePrivate})
	if pass != nil {
		return
	}
	delete(s.writer.Header(), contentEncoding) // of a middleware behind, whose writer is gone
	if s.encoding != nil {
		s.writer.Header()[contentEncoding] = s.encoding
	}
	httpreply.Write(s.writer, loss)
}
