package wire

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// Commands are counted before they are sent: more are sent than the connection buffers
// while no goroutine reads.
func TestCommandsCountBeforeTheyAreAnswered(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counter := new(Counter)
	client, err := counter.Dial(t.Context(), new(net.Dialer), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	const size, commands = 32 << 20, 3
	ping := "*1\r\n$4\r\nPING\r\n"
	long := "*2\r\n$4\r\nECHO\r\n$33554432\r\n" + strings.Repeat("x", size) + "\r\n"
	wrote := make(chan error, 1)
	go func() {
		_, err := client.Write([]byte(ping + long + ping))
		wrote <- errors.Join(err, client.Close())
	}()
	suite.Eventually(t, "all commands are counted", func() bool { return counter.Commands() == commands })
	select {
	case err := <-wrote:
		t.Fatalf("all was sent, though nobody reads (%v): the test shows nothing", err)
	default:
	}
	_, err = io.Copy(io.Discard, server)
	if err := errors.Join(err, <-wrote, server.Close(), listener.Close()); err != nil {
		t.Error(err)
	}
}
