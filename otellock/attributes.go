package otellock

import (
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"

	"github.com/reqlock/reqlock/core"
)

// The attributes of metrics and spans.
const (
	// LockNameKey is the name of the event. Metrics and spans without a name do not have it.
	LockNameKey = attribute.Key("reqlock.lock.name")
	// OperationKey is "lock", or "attempt" for an idempotent request.
	OperationKey = attribute.Key("reqlock.operation")
	// SharedKey is true if the lock is shared, as by Permits or Shared of a core.Key.
	// Metrics and spans of other locks do not have it.
	SharedKey = attribute.Key("reqlock.lock.shared")
	// OutcomeKey is how a request for a lock ended: "acquired", "replayed", or the code of
	// core.RefusalOf.
	OutcomeKey = attribute.Key("reqlock.outcome")
	// GrantKey is the core.Grant of a lease: "free", "awaited", "passed", "handed" or "accepted".
	GrantKey = attribute.Key("reqlock.grant")
	// LostKey is true if the lease ended before its release.
	LostKey = attribute.Key("reqlock.lost")
	// CauseKey is why a lease was lost: "lost", "max_hold" or "closed".
	CauseKey = attribute.Key("reqlock.cause")
	// EndingKey is the core.Ending of an attempt: "commit", "done", "abort" or "unknown".
	EndingKey = attribute.Key("reqlock.ending")
	// ChangeKey is what an operator has done: "resolved", "revoked" or "freed".
	ChangeKey = attribute.Key("reqlock.change")
	// KeyDigestKey is the digest of the key. Only spans have it.
	KeyDigestKey = attribute.Key("reqlock.key.digest")
	// ProcessKey is the id of the process, with which the tokens of its locks in Redis begin. Only
	// spans have it.
	ProcessKey = attribute.Key("reqlock.process")
	// FirstKey is the reference of the first request with the key, if it is no traceparent: see
	// core.WithReference. A client may have sent it. Only spans of copies have it.
	FirstKey = attribute.Key("reqlock.first")
	// ErrorTypeKey is the code of the failure, such as "unavailable". It is there only if there
	// is one.
	ErrorTypeKey = attribute.Key("error.type")
)

// Codes that are not those of core.RefusalOf.
const (
	codeAcquired = "acquired"
	codeReplayed = "replayed"
	codeOther    = "_OTHER" // as the conventions of OpenTelemetry call it

	causeLost    = "lost"
	causeMaxHold = "max_hold"
	causeClosed  = "closed"

	changeResolved = "resolved"
	changeRevoked  = "revoked"
	changeFreed    = "freed"
)

// commonOf returns the attributes that all metrics and spans of an event have.
func commonOf(key seriesKey) []attribute.KeyValue {
	common := make([]attribute.KeyValue, 0, 10)
	common = append(common, operationOf(key.attempt))
	if key.shared {
		common = append(common, SharedKey.Bool(true))
	}
	if key.name != "" {
		common = append(common, LockNameKey.String(key.name))
	}
	return common
}

// operationOf returns the value of OperationKey.
func operationOf(attempt bool) attribute.KeyValue {
	if attempt {
		return OperationKey.String("attempt")
	}
	return OperationKey.String("lock")
}

// outcomeOf returns how a request for a lock ended, and the error.type, "" for none.
func outcomeOf(e core.Event) (code, failure string) {
	switch e.Kind {
	case core.Acquired:
		return codeAcquired, ""
	case core.Replayed:
		return codeReplayed, ""
	default:
	}
	refusal, known := core.RefusalOf(e.Err)
	switch {
	case !known:
		return codeOther, codeOther
	case refusal.HTTP >= http.StatusInternalServerError:
		return refusal.Code, refusal.Code
	}
	return refusal.Code, ""
}

// causeOf returns why a lease was lost; "" if the error is no loss.
func causeOf(err error) string {
	switch {
	case errors.Is(err, core.ErrMaxHold):
		return causeMaxHold
	case errors.Is(err, core.ErrLost):
		return causeLost
	case errors.Is(err, core.ErrClosed):
		return causeClosed
	}
	return ""
}

// failureOf returns the error.type of what Redis did not confirm; "" for nil and for a loss.
func failureOf(err error) string {
	if err == nil || causeOf(err) != "" {
		return ""
	}
	if refusal, known := core.RefusalOf(err); known {
		return refusal.Code
	}
	return codeOther
}

// endingFailureOf returns the error.type of the end of an attempt; "" for none. The answer of
// an attempt that was lost is not stored, so that is a failure here.
func endingFailureOf(e core.Event) string {
	if e.Kind == core.Committed {
		if cause := causeOf(e.Err); cause != "" {
			return cause
		}
	}
	return failureOf(e.Err)
}
