package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestIsOutage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"NOAUTH Authentication required.":                                                   true,
		"ERR Protocol error: unauthenticated multibulk length":                              true, // of a long command
		"NOPERM User u has no permissions to run the 'evalsha' command":                     true,
		"ERR The user executing the script can't run this command or subcommand script: ab": true,
		"ERR Error running script: @user_script: 1: Unknown Redis command called from":      true,
		"OOM command not allowed when used memory > 'maxmemory'.":                           true,
		"LOADING Redis is loading the dataset in memory":                                    true,
		"MOVED 12 10.0.0.1:6379":                                                            true, // to a client of one server
		"WRONGTYPE Operation against a key holding the wrong kind of value":                 false,
		"TRYAGAIN Multiple keys request during rehashing of slot":                           false,
		"ERR refused": false,
	} {
		if got := IsOutage(storetest.ServerError(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	for _, err := range []error{ErrNoReply, redis.ErrClosed} {
		if !IsOutage(err) {
			t.Errorf("%v is no outage", err)
		}
	}
	for _, err := range []error{UnexpectedReply(1), Answered(ErrNoReply)} {
		if IsOutage(err) {
			t.Errorf("%v is an outage", err)
		}
	}
}

func TestMayBeApplied(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"upstream failure":            true, // of a proxy
		"ERR server connection close": true, // of a proxy
		"ERR unknown command 'delifeq', with args beginning with: 'k'": false,
		"ERR max number of clients reached":                            false,
		"CROSSSLOT Keys in request don't hash to the same slot":        false,
		"NOSCRIPT No matching script.":                                 false,
	} {
		if got := MayBeApplied(storetest.ServerError(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// secret is a byte of a stored answer. No fixed text has it.
const secret = "z"

// No error has bytes of a reply that lost some. Exception: the text of an error reply with an
// error code.
func TestFaultHasNoBytesOfAReply(t *testing.T) {
	t.Parallel()
	replies := []string{
		"z", "\r\n", "\r\nz\r\n", "z\r\n", "{\"z\":1}\r\n", "HTTP/1.1 400 z\r\n", "+z\r\n", "_z\r\n",
		"-z\r\n", "-\r\n", "-Z z\r\n", "-4111 z\r\n", "- z\r\n", "!2\r\n-z\r\n", "!1\r\nz\r\n",
		":z\r\n", ":99999999999999999999z\r\n", ",z\r\n", "#z\r\n", "(z\r\n", "(99999999999999999999999\r\n",
		"$z\r\n", "$-2z\r\n", "$-2\r\n", "$1\r\nz\r\n", "$9\r\nz\r\n", "=2\r\nzz\r\n", "=z\r\n",
		"*z\r\n", "*1\r\nz\r\n", "*1\r\n$z\r\n", "~z\r\n", ">z\r\n", ">1\r\n:z\r\n", "%1\r\n*0\r\n:1\r\n", "%z\r\n", "|1\r\nz\r\n",
		"-ERR unknown command 'evalsha', with args beginning with: 'z' 'z'\r\n",
		"-ERR unknown command `evalsha`, with args beginning with: `z`, `z`, \r\n",
	}
	replies = append(replies, cuts("*3\r\n$4\r\ndone\r\n$40\r\nzz\r\n-zz\r\n:zz\r\n$zz\r\n*zz\r\nzz\r\n-zz 1 zz zz\r\n:1\r\n")...)
	replies = append(replies, cuts("-ERR unknown command 'evalsha', with args beginning with: 'zz' 'zz'\r\n")...)
	for _, reply := range replies {
		var set SetNX
		set.Reset([]any{"set", "key", "token", "nx"})
		for _, cmd := range []Command{New(1, []any{"evalsha"}), &set} {
			_, err := cmd.Reply(process(cmd, reply))
			if err == nil {
				continue
			}
			fault := NewFault(err, true)
			for err := error(fault); err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%T after %q: %v", cmd, reply, err)
				}
			}
		}
	}
}

// cuts returns the reply after the loss of up to 24 bytes at each place.
func cuts(reply string) (replies []string) {
	for from := range reply {
		for to := from + 1; to <= min(from+24, len(reply)); to++ {
			replies = append(replies, reply[:from]+reply[to:])
		}
	}
	return replies
}

// process sends a command on a connection that replies with these bytes and then ends.
func process(cmd redis.Cmder, reply string) error {
	rdb := redis.NewClient(&redis.Options{
		Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &replying{strings.NewReader("-ERR unknown command 'hello'\r\n" + reply)}, nil
		},
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Process(context.Background(), cmd)
}

// A replying connection has all its replies from the beginning.
type replying struct{ *strings.Reader }

func (*replying) Write(p []byte) (int, error)      { return len(p), nil }
func (*replying) Close() error                     { return nil }
func (*replying) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*replying) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*replying) SetDeadline(time.Time) error      { return nil }
func (*replying) SetReadDeadline(time.Time) error  { return nil }
func (*replying) SetWriteDeadline(time.Time) error { return nil }

// Errors of the network, of TLS and of Redis keep their texts, and so does an error of the
// user's dialer.
func TestFaultKeepsItsText(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "redis"}}
	for _, err := range []error{
		dial, fmt.Errorf("a hook: %w", dial), io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, syscall.ECONNRESET,
		tls.AlertError(42),
		x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"redis"}}, Host: "z"},
		errors.New("the dialer has no password"),
		redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
		fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", errors.Join(dial)),
		storetest.ServerError("OOM command not allowed when used memory > 'maxmemory'."),
		storetest.ServerError("ERR Error compiling script: NOPERM The user executing the script can't run the 'lrange' command"),
		storetest.ServerError("READONLY You can't write against a read only replica."),
		fmt.Errorf("failed to authenticate: %w", storetest.ServerError("WRONGPASS invalid username-password pair or user is disabled.")),
	} {
		if fault := NewFault(err, false); fault.Error() != err.Error() || fault.Unknown {
			t.Errorf("%v became %+v", err, fault)
		}
	}
}

func TestMain(m *testing.M) { suite.Main(m) }

// Neither an error nor an error that it wraps has the user's name or the arguments.
func TestFaultHasNoUserAndNoArguments(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"NOPERM User alice has no permissions to run the 'set' command":             "NOPERM this user has no permissions to run the 'set' command",
		"ERR unknown command 'EVALSHA', with args beginning with: 'digest' 'alice'": "ERR unknown command 'EVALSHA'",
	} {
		fault := NewFault(storetest.ServerError(says), false)
		if fault.Temporary || fault.Unknown || IsTransport(fault) || fault.Error() != want {
			t.Errorf("%+v is another fault than without the name", fault)
		}
		for err := error(fault); err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), "alice") {
				t.Errorf("%T tells %q", err, err)
			}
		}
	}
}
