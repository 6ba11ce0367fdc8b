package redistest

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRestartWithData(t *testing.T) {
	t.Parallel()
	server := Start(t, "--requirepass", "secret")
	client := server.Client(t)
	for _, value := range []string{"first", "second"} {
		if err := client.Set(t.Context(), "k", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		old := server.proc
		server.RestartWithData()
		if !old.HasEnded() || server.proc == old {
			t.Fatal("the server was not restarted")
		}
		if got := client.Get(t.Context(), "k").Val(); got != value {
			t.Errorf("got %q, want %q", got, value)
		}
	}
	server.Restart() // the file still exists
	if err := client.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("got %v, want an empty server", err)
	}

	server.Kill()
	r := &recorder{TB: t}
	server.tb = r
	watch(t, func(testing.TB) { server.RestartWithData() })
	if !strings.Contains(r.ended, "it is not running") {
		t.Errorf("restart of a killed server: got %q", r.ended)
	}
}

func TestRestartFromDisk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args    []string
		restart func(s *Server)
		want    int64
	}{
		"what was confirmed":  {[]string{"--appendonly", "yes"}, (*Server).RestartFromDisk, 2},
		"without persistence": {nil, (*Server).RestartFromDisk, 1},
		"with empty memory":   {[]string{"--appendonly", "yes"}, (*Server).Restart, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := Start(t, test.args...)
			client := server.Client(t)
			if err := client.Incr(t.Context(), "k").Err(); err != nil {
				t.Fatal(err)
			}
			server.Kill()
			test.restart(server)
			if got := client.Incr(t.Context(), "k").Val(); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
