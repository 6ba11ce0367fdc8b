package conformance

import (
	"errors"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// faultScenarios make Redis unavailable, or lose data or replies.
func faultScenarios() []testCase {
	return []testCase{
		{"Redis is unavailable before the request", everywhere, downBefore},
		{"Redis becomes unavailable while the handler runs", everywhere, downMeanwhile},
		{"the record is deleted while the handler runs", everywhere, recordVanishes},
		{"the reply to the commit is lost", everywhere, replyLost},
	}
}

func downBefore(e *environment) {
	s := e.serveEndpoint(endpoint{})
	e.proxy.Refuse(true)
	s.refuses(&core.Error{Kind: core.ErrUnavailable, RetryAfter: time.Second}, payment("down"))
	e.proxy.Refuse(false)
	s.replays(s.runsWith(http.StatusCreated, payment("down")), payment("down"))
}

// The client gets the answer, and so do its copies, although it is not stored yet. Another request with the key is to come
// again. Once Redis is back, the answer is stored.
func downMeanwhile(e *environment) {
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		handler: func(t invocation) {
			e.proxy.Refuse(true)
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		},
	})
	first := s.runsWith(http.StatusCreated, payment("down"))
	if first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
	}
	for _, event := range e.events.await(e.T, core.Committed, 1) {
		if !errors.Is(event.Err, core.ErrUnavailable) {
			e.Errorf("committed: %v", event.Err)
		}
	}
	for _, event := range e.events.await(e.T, core.OutcomeUnknown, 1) {
		if endpoint, _ := event.Key.Endpoint(); endpoint != e.endpointKey("down") || !errors.Is(event.Err, core.ErrUnavailable) {
			e.Errorf("unknown: %+v of the endpoint %q", event, endpoint)
		}
	}
	s.wantReplay(first, s.do(e.Context(), payment("down")))
	other := payment("down")
	other.body = "other"
	s.refuses(&core.Error{Kind: core.ErrUnavailable, RetryAfter: time.Second}, other)
	e.proxy.Refuse(false)
	e.events.await(e.T, core.Committed, 2)
	s.replays(first, payment("down"))
}

func recordVanishes(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		e.forget()
		t.WriteHeader(http.StatusCreated)
	}})
	s.replays(s.runsWith(http.StatusCreated, payment("vanishes")), payment("vanishes"))
	e.events.await(e.T, core.Restored, 1)
}

// forget deletes all keys of the case, as the loss of a server does.
func (e *environment) forget() {
	e.Helper()
	names := e.names(e.Context(), "")
	if len(names) == 0 {
		e.Error("there is nothing to delete")
	}
	for _, name := range names { // one by one, because they may be in different slots
		if err := e.rdb.Del(e.Context(), name).Err(); err != nil {
			e.Errorf("DEL: %v", err)
		}
	}
}

// The commit is resent, and takes effect once.
func replyLost(e *environment) {
	var lost <-chan struct{}
	knows := false // the master of the key has loaded the scripts, after the first commit
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		if knows {
			lost = e.proxy.DropReply(redistest.Named("evalsha"), redistest.CloseConn)
		}
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte("paid"))
	}})
	s.runsWith(http.StatusCreated, payment("reply"))
	e.forget()
	knows = true
	first := s.runsWith(http.StatusCreated, payment("reply"))
	suite.ReceiveAnywhere(e.T, "a reply was lost", lost)
	s.replays(first, payment("reply"))
}
