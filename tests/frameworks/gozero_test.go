package frameworks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zeromicro/go-zero/core/conf"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// zeroHandler returns the handler of a server with go-zero's own middlewares.
func zeroHandler(t *testing.T, locks *core.Locker, timeout time.Duration, transfer http.HandlerFunc) http.Handler {
	t.Helper()
	var config rest.RestConf
	text := fmt.Appendf(nil, `{"Name":"bank","Port":1,"Log":{"Level":"severe","Stat":false},"Timeout":%d}`, timeout.Milliseconds())
	if err := conf.LoadFromJsonBytes(text, &config); err != nil {
		t.Fatal(err)
	}
	server, err := rest.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	addZeroRoutes(server, locks, transfer)
	serverless, err := rest.NewServerless(server)
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(serverless.Serve)
}

func TestGoZero(t *testing.T) {
	locks := locktest.New(t)
	accountRoute.checkExclusion(t, http.StatusConflict, func(transfer func(string)) http.Handler {
		return zeroHandler(t, locks.Locker, time.Minute,
			transferAt(transfer, func(r *http.Request) string { return pathvar.Vars(r)["id"] }))
	})
}

// go-zero's timeout stands outside the lock, so the lock is held until the handler returns.
func TestGoZeroHoldsTheLockAfterItsTimeout(t *testing.T) {
	finish := make(chan struct{})
	locks := locktest.New(t)
	server := httptest.NewServer(zeroHandler(t, locks.Locker, 20*time.Millisecond, func(http.ResponseWriter, *http.Request) {
		<-finish
	}))
	defer server.Close()
	first, second := accountRoute.post(t, server, "42", ""), accountRoute.post(t, server, "42", "")
	close(finish)
	if first.status != http.StatusServiceUnavailable || second.status != http.StatusConflict {
		t.Errorf("%v, then %v", first, second)
	}
	suite.Eventually(t, "the lock is free", func() bool { return accountRoute.post(t, server, "42", "").status == http.StatusOK })
}
