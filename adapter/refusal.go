package adapter

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// ProblemType is the media type of Problem.
const ProblemType = "application/problem+json"

// RefusalOf returns core.RefusalOf, or 500 with the code "internal" for an
// error that core does not know.
func RefusalOf(err error) core.Refusal {
	if refusal, ok := core.RefusalOf(err); ok {
		return refusal
	}
	if own, ok := err.(streamMistake); ok { //nolint:errorlint // it is never wrapped
		return own.refusal
	}
	return core.Refusal{
		Code: "internal", HTTP: http.StatusInternalServerError, GRPC: rpcInternal, Type: bridge.TypeOf(err, "internal"),
		Detail: "The request could not be locked.",
	}
}

// WriteRefusal answers a request that did not run, or whose handler lost its lock, because of err: with
// its status, its headers and its Problem.
func WriteRefusal(w http.ResponseWriter, err error) { writeRefusal(w, err) }

// writeRefusal is WriteRefusal, and returns what it has answered.
func writeRefusal(w http.ResponseWriter, err error) core.Refusal {
	refusal := RefusalOf(err)
	noteOurs(w, err, refusal)
	ClearAnswerHeader(w.Header())
	SetRefusalHeader(w.Header(), refusal)
	body := Problem(refusal)
	if body != nil {
		w.Header().Set("Content-Type", ProblemType)
	}
	w.WriteHeader(refusal.HTTP)
	if body != nil {
		// An error means that the client has disconnected.
		_, _ = w.Write(body)
	}
	return refusal
}

// ClearAnswerHeader removes headers that a middleware may have set for another answer.
// Content-Encoding stays: the middleware that set it will encode the body.
func ClearAnswerHeader(h http.Header) {
	for _, name := range [...]string{"Content-Length", "Content-Type", "Etag", "Last-Modified", "Location"} {
		h.Del(name)
	}
}

// SetRefusalHeader sets Cache-Control, and Retry-After in whole seconds if a retry can help.
func SetRefusalHeader(h http.Header, r core.Refusal) {
	h.Set("Cache-Control", "no-store")
	h.Del("Retry-After") // says that the client may try again
	if r.RetryAfter > 0 {
		h.Set("Retry-After", wholeSeconds(r.RetryAfter))
	}
}

// Problem returns the problem document (RFC 9457) of a refusal. It is nil for a client that has
// disconnected. It contains neither the key nor the text of an error.
func Problem(r core.Refusal) []byte {
	if r.Code == "canceled" {
		return nil
	}
	body, _ := json.Marshal(problem{ // strings and an int, which cannot fail
		Type:   cmp.Or(r.Type, "about:blank"),
		Title:  titleOf(r),
		Status: r.HTTP,
		Detail: r.Detail,
		Code:   r.Code,
		First:  r.First,
	})
	return append(body, '\n')
}

// A problem is a problem document of RFC 9457, with a code for programs.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title,omitempty"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	First  string `json:"first,omitempty"`
}

// titleOf returns the title of a problem document: the name of its type, which is that of the status
// for about:blank.
func titleOf(r core.Refusal) string {
	if r.Type == "" {
		return http.StatusText(r.HTTP)
	}
	return strings.ToUpper(r.Code[:1]) + strings.ReplaceAll(r.Code[1:], "_", " ")
}

// InContext returns err for WriteRefusal and RefusalOf, to answer the request of a context. A cause of
// the context of a lease, such as core.ErrLost, gets the problem type of the Locker that has given the
// lease: see core.WithProblemType. The errors of Lock.Enter and of an idempotent middleware have it.
func InContext(ctx context.Context, err error) error { return bridge.InContext(ctx, err) }

// wholeSeconds rounds up, so that a client does not retry too early.
func wholeSeconds(d time.Duration) string {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}
