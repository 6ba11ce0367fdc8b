package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The record of a process that was killed says which one it was.
func TestASilentProcessKeepsItsName(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, lease := newSite(t, rdb), must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	id := processOf(lease)
	if err := rdb.RPush(t.Context(), "{reqlock:k}:q", id+":9").Err(); err != nil {
		t.Fatal(err)
	}
	register(t, rdb, id, "payments", nil, []string{s.lock(t, "k").Key.String()})
	if err := rdb.PExpire(t.Context(), keyspace.New("reqlock:").Process(id), time.Hour-45*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	digest, name := s.lock(t, "k").Key.String(), "payments on pod-7 "+id[:8]+" silent"
	get(t, s, "").want(t, http.StatusOK, "Processes 0 registered, 1 silent", name)
	if a := get(t, s, ""); strings.Contains(a.text(), "requests") { // they may have ended with the process
		t.Error(a.text())
	}
	get(t, s, "?processes").want(t, http.StatusOK, name)
	get(t, s, "?lock="+digest).want(t, http.StatusOK, name, "Its process has been silent for 4")
	get(t, s, "?process="+id).want(t, http.StatusOK, "Host pod-7", "its last record is older than 30 s", "Locks that it holds", digest)
}
