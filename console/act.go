package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// actBound limits the time of an action with what is read before and after it.
const actBound = 15 * time.Second

// An action is what an operator wants to do, and why.
type action struct {
	kind          ActionKind
	actor, reason string
}

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
func (c *Console) begin(w http.ResponseWriter, r *http.Request, kind ActionKind) (a action, ok bool) {
	actor, allowed := c.whoActs(r)
	switch {
	case kind == 0 || !c.actions[kind]:
		c.problem(w, r, http.StatusForbidden, "This action is not allowed here. The program allows it with console.WithActions.")
	case !allowed[kind.String()]:
		c.problem(w, r, http.StatusForbidden, "It is not known who you are, so you cannot act.")
	default:
		return action{kind, actor, strings.TrimSpace(r.PostForm.Get("reason"))}, true
	}
	return action{}, false
}

// under returns the context in which the operator acts, or says what is wrong with the reason. It does not end if the
// browser leaves, so that no action is done by half.
func (a action) under(ctx context.Context) (acting context.Context, fault string) {
	if a.reason == "" {
		return nil, "Nothing was done: the reason is missing."
	}
	acting, err := core.AsOperator(context.WithoutCancel(ctx), a.actor, a.reason)
	if err != nil {
		return nil, "Nothing was done: " + strings.TrimPrefix(err.Error(), "reqlock: AsOperator: ") + "."
	}
	return acting, ""
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
	acting, fault := a.under(r.Context())
	switch {
	case fault != "":
	case len(leases) == 0:
		fault = "Nothing was done: no lease is chosen."
	case kind == Revoke && confirm != "yes":
		fault = "Nothing was done: confirm that the lease is to end."
	case kind == FreeNow && confirm != digest:
		fault = "Nothing was done: to free the lock at once, type its digest, " + digest + "."
	}
	if fault != "" {
		c.showLock(w, r, digest, answer{status: http.StatusBadRequest, alert: fault, reason: a.reason, sent: kind})
		return
	}
	key, ok := c.board.key(r.Context(), digest)
	if !ok {
		c.showLock(w, r, digest, answer{})
		return
	}
	ctx, cancel := context.WithTimeout(acting, actBound)
	defer cancel()
	lock, err := c.readLock(ctx, key)
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
		err = c.inspector.FreeNow(ctx, lock)
	}
	if err != nil {
		now, _ := c.readLock(ctx, key)
		c.showLock(w, r, digest, refused(a, err, changeOf(now)))
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
	how := r.PostForm.Get("resolution")
	resolutions := map[string]core.Resolution{"done": core.Done(), "not_done": core.NotDone()}
	resolution, isChosen := resolutions[how]
	acting, fault := a.under(r.Context())
	switch {
	case fault != "":
	case !isChosen:
		fault = "Nothing was done: choose whether the request took effect."
	case how == "not_done" && r.PostForm.Get("ended") != "yes":
		fault = "Nothing was done: “Not done” is only for a request whose handler has ended."
	}
	if fault != "" {
		c.showAttempt(w, r, digest, answer{status: http.StatusBadRequest, alert: fault, reason: a.reason})
		return
	}
	key, ok := c.board.key(r.Context(), digest)
	if !ok {
		c.showAttempt(w, r, digest, answer{})
		return
	}
	ctx, cancel := context.WithTimeout(acting, actBound)
	defer cancel()
	record, err := c.readRecord(ctx, key)
	switch {
	case errors.Is(err, core.ErrNotFound), err == nil && record.Attempt.String() != r.PostForm.Get("attempt"):
		err = core.ErrChanged
	case err == nil:
		err = c.inspector.Resolve(ctx, record, resolution)
	}
	if err != nil {
		c.showAttempt(w, r, digest, refused(a, err, "The request has changed"))
		return
	}
	toPage(w, "attempt", digest, "did", how)
}

// refused returns what a page says about an action that has failed with this error. change says what is not as the form
// has it, if that is the reason.
func refused(a action, err error, change string) answer {
	why := strings.ReplaceAll(err.Error(), "reqlock: ", "")
	why = strings.ToUpper(why[:1]) + why[1:]
	to := answer{status: http.StatusConflict, reason: a.reason, sent: a.kind}
	switch {
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		to.status = http.StatusServiceUnavailable
		to.alert = "Redis did not reply, or refused a command, so perhaps it was done: look again. " + why
	case errors.Is(err, inspect.ErrChanged), errors.Is(err, core.ErrChanged):
		to.alert = "Nothing was done. " + change + " since you opened the form."
	default:
		to.alert = "Nothing was done. " + why + "."
	}
	return to
}

// changeOf says what has become of the lock of a form.
func changeOf(now inspect.Lock) string {
	switch {
	case len(now.Holders) == 0:
		return "The lease has ended"
	case now.Shared:
		return "A lease that you chose has ended"
	case now.Holders[0].Kind == inspect.HolderRevoked:
		return "The lease was revoked"
	default:
		return "The lock has a new holder"
	}
}
