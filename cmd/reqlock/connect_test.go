package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// urlOf returns the URL of servers, and another spelling of it.
func urlOf(d *redistest.Deployment) (spellings []string) {
	o := d.Options()
	parameters := url.Values{"addr": o.Addrs[1:]}
	switch d.Kind {
	case redistest.OnServer:
		return []string{"redis://" + o.Addrs[0], "redis://" + o.Addrs[0] + "/0"}
	case redistest.OnSentinels:
		parameters.Set("master_name", o.MasterName)
		return []string{"redis+sentinel://" + o.Addrs[0] + "?" + parameters.Encode(), "redis://" + o.Addrs[0] + "/0?" + parameters.Encode()}
	default:
		return []string{"redis+cluster://" + o.Addrs[0], "redis://" + o.Addrs[0] + "?" + parameters.Encode()}
	}
}

func TestEachKindOfRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipSentinels(t)
			d := kind.Start(t)
			d.Grant("+scan", "+dbsize", "+getrange", "+hmget", "+strlen", "+exists", "+info")
			locks := newLocker(t, d.Client(t))
			keys := strings.Fields("a b c d e f g h")
			for _, key := range keys {
				must(locks.Lock(t.Context(), key))(t)
			}
			for _, spelling := range urlOf(d) {
				o := operator{url: spelling}
				if n := len(lines[lockView](t, o.run(t, "ls", "--json"))); n != len(keys) {
					t.Errorf("%s: %d locks", spelling, n)
				}
				o.run(t, "doctor").want(t, exitOK)
			}
			o := operator{url: urlOf(d)[0]}
			o.run(t, "free", "a").want(t, exitOK, "revoked a")
			o.run(t, "free", "a", "--now", "--yes").want(t, exitOK, "freed a")
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server, addr, _ := redistest.StartTLS(t)
	server.Grant("+scan", "+dbsize", "+getrange", "+hmget", "+strlen", "+exists")
	o := operator{url: "rediss://" + addr + "?skip_verify=true"}
	o.run(t, "show", "k").want(t, exitNotFound)
	o.url = "rediss://" + addr
	o.run(t, "show", "k").want(t, exitError, "certificate")
}

// No text of a parser is printed, because it may have a part of a password.
func TestAPasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"redis://u:s3cret:more@host:port/0", "redis://:s3cret/rest@host", "redis://u:s3cret@host/s3cret", "redis://:12?s3cret@host/0", "s3cret", "http://s3cret",
		"redis+odd://u:s3cret@host", "redis://u:s3cret@host?db=s3cret", "redis://u:s3cret@host?addr=s3cret", "redis+cluster://u:s3cret@host?s3cret=1",
		"redis+sentinel://u:s3cret@host/s3cret?master_name=m", "redis+sentinel://u:s3cret@host", "redis://u:s3cret@host?master_name=m&route_by_latency=true", "://s3cret",
		"redis+cluster://u:s3cret@host?read_only=true", "redis://u:s3cret@host/0?dial_timeout=s3cret",
		"redis://:12#s3cret@host", "redis+cluster://:12#s3cret@host", "redis+sentinel://:12#s3cret@host", "redis:s3cret@host",
	} {
		for _, r := range []result{operator{url: wrong}.run(t, "ls"), operator{}.run(t, "ls", "--url", wrong)} {
			r.want(t, exitUsage)
			if strings.Contains(r.out+r.problems, "s3cret") {
				t.Errorf("%s: %s", wrong, r.problems)
			}
		}
	}
	_, _, o := start(t)
	o.url = strings.Replace(o.url, "redis://", "redis://u:s3cret@", 1)
	for _, command := range []string{"ls", "doctor"} {
		r := o.run(t, command).want(t, exitError)
		if strings.Contains(r.out+r.problems, "s3cret") || !strings.Contains(r.out+r.problems, "WRONGPASS") {
			t.Errorf("%s: %s%s", command, r.out, r.problems)
		}
	}
}

func TestClientsEndWithTheirContexts(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"redis://h", "redis+cluster://h", "redis+sentinel://h?master_name=m"} {
		rdb := must(newClient(raw))(t)
		on := false
		switch client := rdb.(type) {
		case *redis.Client:
			on = client.Options().ContextTimeoutEnabled
		case *redis.ClusterClient:
			on = client.Options().ContextTimeoutEnabled
		}
		if err := rdb.Close(); err != nil || !on {
			t.Errorf("%s: %v, %v", raw, on, err)
		}
	}
}
