package crash

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A write is what a script made of a record.
type write struct {
	State  string // as in record.lua; "" is that it was forgotten
	Token  string
	Number int
	Answer string // as it was committed
}

// A witness hears from Redis each write to a record, in the order in which they
// happened. It is safe for concurrent use.
type witness struct {
	conn  net.Conn
	admin *redis.Client
	done  chan struct{}

	mu       sync.Mutex
	marks    int
	heard    int // of the marks
	writes   map[string][]write
	mentions map[string]int // how many scripts ran for a token
}

// newWitness listens to a server until the end of the test.
func newWitness(t *testing.T, server *redistest.Server) *witness {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{
		conn: conn, admin: server.Client(t), done: make(chan struct{}),
		writes: map[string][]write{}, mentions: map[string]int{},
	}
	go w.listen()
	t.Cleanup(func() {
		_ = conn.Close()
		<-w.done
	})
	if _, err := conn.Write([]byte(redistest.SignIn() + "MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	return w
}

// settle returns when the witness has heard all that has happened before.
func (w *witness) settle(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	w.marks++
	mark := w.marks
	w.mu.Unlock()
	await(t, "the witness has heard all", func() bool {
		w.admin.Echo(t.Context(), fmt.Sprintf("mark:%d", mark))
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.heard >= mark
	})
}

// of returns what was written to the record of a lock.
func (w *witness) of(lock string) []write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]write(nil), w.writes["{"+lock+"}:r"]...)
}

// ran returns how many scripts have run for a token.
func (w *witness) ran(token string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mentions[token]
}

func (w *witness) listen() {
	defer close(w.done)
	lines := bufio.NewReader(w.conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		w.hear(line)
	}
}

// word finds the words of a command, as MONITOR quotes them.
var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// hear takes in one line of MONITOR.
func (w *witness) hear(line string) {
	inScript := strings.Contains(line, " lua] ")
	var command []string
	for _, quoted := range word.FindAllString(line, -1) {
		if text, err := strconv.Unquote(quoted); err == nil {
			command = append(command, text)
		}
	}
	if len(command) < 2 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := strings.ToUpper(command[0])
	switch {
	case name == "ECHO":
		_, _ = fmt.Sscanf(command[1], "mark:%d", &w.heard)
	case strings.HasPrefix(name, "EVAL"):
		w.mentions[tokenOf(command)]++
	case inScript && strings.HasSuffix(command[1], ":r"):
		w.hearWrite(name, command[1], command[2:])
	}
}

// hearWrite takes in what a script does to a record.
func (w *witness) hearWrite(name, record string, fields []string) {
	all := w.writes[record]
	switch name {
	case "DEL":
		all = append(all, write{})
	case "HSET":
		made := write{State: "R"} // an abort after one that died leaves that state as it is
		for i := 0; i+1 < len(fields); i += 2 {
			switch value := fields[i+1]; fields[i] {
			case "s":
				made.State = value
			case "t":
				made.Token = value
			case "n":
				made.Number, _ = strconv.Atoi(value)
			case "p":
				made.Answer = value
			}
		}
		all = append(all, made)
	}
	w.writes[record] = all
}
