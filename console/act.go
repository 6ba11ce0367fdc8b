package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

const (
	// maxReason limits the length of a reason in bytes.
	maxReason = 500
	// actBound limits the time of an action with what is read before and after it.
	actBound = 15 * time.Second
)

// whoActs returns the operator and the names of the actions that the operator may carry out.
func (c *Console) whoActs(r *http.Request) (actor string, allowed map[string]bool) {
	if c.actor == nil {
		return "", nil
	}
	actor, allowed = c.actor(r), make(map[string]bool)
	for kind := Revoke; kind <= Resolve && actor != ""; kind++ {
		if c.actions[kind] {
			allowed[kind.String()] = true
		}
	}
	return actor, allowed
}

// begin returns the action that a form asks for. It reports false after it has answered with 403.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, kind ActionKind) (a Action, ok bool) {
	actor, allowed := c.whoActs(r)
	switch {
	case kind == 0 || !c.actions[kind]:
		c.problem(w, r, http.StatusForbidden, "This action is not allowed here. The program allows it with console.WithActions.")
	case !allowed[kind.String()]:
		c.problem(w, r, http.StatusForbidden, "It is not known who you are, so you cannot act.")
	default:
		return Action{Kind: kind, Actor: actor, Reason: strings.TrimSpace(r.PostForm.Get("reason"))}, true
	}
	return Action{}, false
}

// fault says what is wrong with the reason, or "".
func (a Action) fault() string {
	switch {
	case a.Reason == "":
		return "Nothing was done: the reason is missing."
	case len(a.Reason) > maxReason || !utf8.ValidString(a.Reason) || strings.ContainsFunc(a.Reason, unicode.IsControl):
		return fmt.Sprintf("Nothing was done: the reason has more than %d bytes, or control characters, or is not UTF-8.", maxReason)
	default:
		return ""
	}
}

// endLeases revokes leases or frees them at once: those that the form has, and no other.
func (c *Console) endLeases(w http.ResponseWriter, r *http.Request, digest string) {
	kind := kindOf(r.PostForm.Get("action"))
	if kind == Resolve {
		kind = 0
	}
	a, ok := c.begin(w, r, kind)
	if !ok {
		return
	}
	leases, confirm := r.PostForm["lease"], strings.ToLower(strings.TrimSpace(r.PostForm.Get("confirm")))
	fault := a.fault()
	switch {
	case fault != "":
	case len(leases) == 0:
		fault = "Nothing was done: no lease is chosen."
	case kind == Revoke && confirm != "yes":
		fault = "Nothing was done: confirm that the lease is to end."
	case kind == HandOver && confirm != digest:
		fault = "Nothing was done: to free the lock at once, type its digest, " + digest + "."
	}
	if fault != "" {
		c.showLock(w, r, digest, answer{status: http.StatusBadRequest, alert: fault, reason: a.Reason, sent: kind})
		return
	}
	if a.Key, ok = c.board.key(r.Context(), digest); !ok {
		c.showLock(w, r, digest, answer{})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actBound) // not half an action if the browser leaves
	defer cancel()
	lock, err := c.readLock(ctx, a.Key)
	a.Before = describeLock(lock, err)
	if err == nil {
		if lock.Holders = withLeases(lock.Holders, leases); len(lock.Holders) < len(leases) {
			err = inspect.ErrChanged
		}
	}
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		err = inspect.ErrChanged
	case err == nil && kind == Revoke:
		err = c.inspector.Revoke(ctx, lock)
	case err == nil:
		err = c.inspector.HandOver(ctx, lock)
	}
	now, readErr := c.readLock(ctx, a.Key)
	a.After, a.Err = describeLock(now, readErr), err
	c.audit(context.WithoutCancel(r.Context()), a) // not ctx: an action that has used up its time is audited, too
	if err != nil {
		c.showLock(w, r, digest, refused(a, changeOf(now)))
		return
	}
	toPage(w, "lock", digest, "did", kind.String(), "ended", leases[0])
}

// withLeases returns those of the holders that have one of the leases.
func withLeases(holders []inspect.Holder, leases []string) []inspect.Holder {
	return slices.DeleteFunc(slices.Clone(holders), func(h inspect.Holder) bool { return h.Lease == "" || !slices.Contains(leases, string(h.Lease)) })
}

// resolve ends the unknown outcome of the attempt that the form has.
func (c *Console) resolve(w http.ResponseWriter, r *http.Request, digest string) {
	a, ok := c.begin(w, r, Resolve)
	if !ok {
		return
	}
	a.Resolution = r.PostForm.Get("resolution")
	resolutions := map[string]core.Resolution{"done": core.Done(), "not_done": core.NotDone()}
	resolution, isChosen := resolutions[a.Resolution]
	fault := a.fault()
	switch {
	case fault != "":
	case !isChosen:
		fault = "Nothing was done: choose whether the request took effect."
	case a.Resolution == "not_done" && r.PostForm.Get("ended") != "yes":
		fault = "Nothing was done: “Not done” is only for a request whose handler has ended."
	}
	if fault != "" {
		c.showAttempt(w, r, digest, answer{status: http.StatusBadRequest, alert: fault, reason: a.Reason})
		return
	}
	if a.Key, ok = c.board.key(r.Context(), digest); !ok {
		c.showAttempt(w, r, digest, answer{})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actBound)
	defer cancel()
	record, err := c.readRecord(ctx, a.Key)
	a.Before = describeRecord(record, err)
	switch {
	case errors.Is(err, core.ErrNotFound), err == nil && record.Attempt.String() != r.PostForm.Get("attempt"):
		err = core.ErrChanged
	case err == nil:
		err = c.inspector.Resolve(ctx, record, resolution)
	}
	a.After, a.Err = describeRecord(c.readRecord(ctx, a.Key)), err
	c.audit(context.WithoutCancel(r.Context()), a)
	if err != nil {
		c.showAttempt(w, r, digest, refused(a, "The request has changed"))
		return
	}
	toPage(w, "attempt", digest, "did", a.Resolution)
}

// describeLock says in words what a lock is, for an Action.
func describeLock(lock inspect.Lock, err error) string {
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		return "free"
	case err != nil:
		return ""
	case len(lock.Holders) == 0:
		return "without a holder, " + count(lock.Waiting, "process waits", "processes wait")
	}
	const most = 3
	var words []string
	for _, h := range lock.Holders[:min(most, len(lock.Holders))] {
		words = append(words, strings.TrimSpace(h.Kind.String()+" "+h.Process)+", "+lasted(h.LeaseLeft)+" left")
	}
	if more := len(lock.Holders) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, "; ") + "; " + count(lock.Waiting, "process waits", "processes wait")
}

// describeRecord says in words what a record is, for an Action.
func describeRecord(record inspect.Record, err error) string {
	switch {
	case errors.Is(err, core.ErrNotFound):
		return "no record"
	case err != nil:
		return ""
	default:
		return record.State.String() + ", attempt " + record.Attempt.String()
	}
}
