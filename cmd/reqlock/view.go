package main

import (
	"strconv"
	"unicode/utf8"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// The types in this file are the lines of --json. Their names are stable. A key is left out with
// --digest, and if Redis has only its digest. A key that is not UTF-8 has its digest only.

// keyNames are the names of a key.
type keyNames struct {
	Key    string `json:"key,omitempty"`
	Digest string `json:"digest"`
	Name   string `json:"name,omitempty"`
}

// A lockView is a lock.
type lockView struct {
	keyNames

	Idempotent bool         `json:"idempotent"`
	Shared     bool         `json:"shared"`
	Holders    []holderView `json:"holders"`
	Waiting    int          `json:"waiting"`
	Waiters    []waiterView `json:"waiters,omitempty"`
	FenceMax   int64        `json:"fence_max,omitempty"`
	Record     *recordView  `json:"record,omitempty"`
}

// A processName says which process that is, if it is registered.
type processName struct {
	ID      string `json:"process,omitempty"`
	Service string `json:"service,omitempty"`
	Version string `json:"version,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Silent  bool   `json:"silent,omitempty"`
}

// A holderView is a lease. Left is -1 if the lock has no TTL. Held and Caller are known if the
// process is registered, and the lease is one of its longest.
type holderView struct {
	processName

	Kind    string `json:"kind"`
	Lease   string `json:"lease,omitempty"`
	Permits int    `json:"permits,omitempty"`
	Left    span   `json:"left_ms"`
	Held    span   `json:"held_ms,omitempty"`
	Caller  string `json:"caller,omitempty"`
}

// A waiterView is a process that waits. Waiting is the time of the request that waits longest.
type waiterView struct {
	processName

	Shared   bool   `json:"shared,omitempty"`
	Permits  int    `json:"permits,omitempty"`
	Requests int    `json:"requests,omitempty"`
	Waiting  span   `json:"waiting_ms,omitempty"`
	Caller   string `json:"caller,omitempty"`
}

// A recordView is the record of a request.
type recordView struct {
	EndpointKey string `json:"endpoint_key,omitempty"`
	Digest      string `json:"digest"`
	State       string `json:"state"`
	Seen        string `json:"seen,omitempty"`
	Attempts    int    `json:"attempts,omitempty"`
	Process     string `json:"process,omitempty"`
	Age         span   `json:"age_ms,omitempty"`
	Retention   span   `json:"retention_ms"`
	AnswerBytes int    `json:"answer_bytes,omitempty"`
	First       string `json:"first,omitempty"`
}

// names returns the names of a key.
func (c *call) names(key inspect.Key) keyNames {
	if c.digest || key.Raw() == "" || !utf8.ValidString(key.Raw()) {
		return keyNames{Digest: key.String()}
	}
	return keyNames{key.Raw(), key.String(), key.Name()}
}

// viewLock returns the view of a lock. find returns a process by its id, if it has a record.
func (c *call) viewLock(lock inspect.Lock, find func(id string) (inspect.Process, bool)) lockView {
	v := lockView{
		keyNames: c.names(lock.Key), Idempotent: lock.Idempotent, Shared: lock.Shared,
		Waiting: lock.Waiting, FenceMax: lock.FenceMax, Holders: make([]holderView, 0, len(lock.Holders)),
	}
	for _, h := range lock.Holders {
		holder := holderView{processName: processName{ID: h.Process, Silent: h.Process != ""}, Kind: h.Kind.String(), Lease: string(h.Lease), Permits: h.Permits, Left: span(h.LeaseLeft)}
		if p, ok := find(h.Process); ok {
			hold, _ := p.Hold(h.Lease)
			holder.processName, holder.Held, holder.Caller = nameOfProcess(p), span(hold.For), hold.Caller
		}
		v.Holders = append(v.Holders, holder)
	}
	for _, w := range lock.Waiters {
		waiter := waiterView{processName: processName{ID: w.Process, Silent: w.Process != ""}, Shared: w.Shared, Permits: w.Permits}
		if p, ok := find(w.Process); ok {
			wait, _ := p.Wait(lock.Key)
			waiter.processName, waiter.Requests, waiter.Waiting, waiter.Caller = nameOfProcess(p), wait.Requests, span(wait.For), wait.Caller
		}
		v.Waiters = append(v.Waiters, waiter)
	}
	return v
}

// viewRecord returns the view of a record.
func (c *call) viewRecord(record inspect.Record) *recordView {
	key, _ := record.Key.EndpointKey()
	v := c.viewKey(key)
	v.Digest, v.State, v.Seen, v.Attempts = record.Key.String(), record.State.String(), record.Attempt.String(), record.Number
	v.Process, v.Retention, v.AnswerBytes, v.First = record.Process, span(record.Retention), record.AnswerBytes, record.First
	if record.State == core.StateUnknown || record.State == core.StateDamaged {
		v.Age = span(record.Age)
	}
	return v
}

// viewKey returns the view of a record of which only the endpoint key is known.
func (c *call) viewKey(endpointKey string) *recordView {
	v := &recordView{EndpointKey: endpointKey, Digest: digestOf(endpointKey)}
	if c.digest || !utf8.ValidString(endpointKey) {
		v.EndpointKey = ""
	}
	return v
}

// nameOfProcess returns the names of a registered process.
func nameOfProcess(p inspect.Process) processName {
	return processName{ID: p.ID, Service: p.Service, Version: p.Version, Host: p.Host, PID: p.PID, Silent: p.Silent()}
}

// shortID is how many digits of the id of a process a table has. All commands accept them.
const shortID = 8

// short returns the first digits of the id.
func (p processName) short() string { return orDash(p.ID[:min(shortID, len(p.ID))]) }

// where returns the service, the machine and the process, as far as they are known, and whether it is silent.
func (p processName) where() string {
	isKnown := p.PID != 0 || p.Host != "" || p.Service != ""
	name := orDash(p.Service) + " " + orDash(p.Host) + ":" + strconv.Itoa(p.PID)
	switch {
	case isKnown && p.Silent:
		return name + " (silent)"
	case isKnown:
		return name
	case p.Silent:
		return "silent"
	default:
		return "-"
	}
}

// dashIfZero returns the span, or "-" if it is not known.
func (d span) dashIfZero() string {
	if d == 0 {
		return "-"
	}
	return d.String()
}
