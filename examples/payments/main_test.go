package main

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	holdIfAsked() // the scenario of a crash starts this program as the holder
	gin.SetMode(gin.TestMode)
	suite.Main(m, suite.Fasthttp()...)
}

func TestAllGoesAsExpected(t *testing.T) {
	suite.Full(t, "waits while Redis is away")
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &out, "", frameworks(), scenarios())
	if err != nil || strings.Count(out.String(), "\n✓") != 96 || !strings.Contains(out.String(), "\nAll 96 went as expected, in ") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Each request has a Locker of its own, so requests share no lock and no record. Scenario 13 would wait a minute for its record.
func TestServiceWithoutLocksIsReported(t *testing.T) {
	t.Parallel()
	redis, err := demoredis.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	unlocked := onHTTP("net/http", func(b *bank, _ *core.Locker) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			own := core.Must(core.New(redis.Client, core.WithPrefix(rand.Text()+":")))
			defer own.Close(t.Context())
			newNetHTTPService(b, own).ServeHTTP(w, r)
		})
	})
	var out strings.Builder
	err = run(t.Context(), &out, "", []framework{unlocked}, scenarios()[:12])
	// The failure that comes before the charge may hit a request of the scenario before, which still runs.
	if err == nil || strings.Count(out.String(), "\n✗") < 10 || !strings.Contains(out.String(), "\n✓  9 orders of nine users ") {
		t.Errorf("%v\n%s", err, &out)
	}
}
