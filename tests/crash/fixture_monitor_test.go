package crash

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A recordMonitor receives each write to a record from Redis, in order, by MONITOR. It is
// safe for concurrent use.
type recordMonitor struct {
	tb    testing.TB
	conn  net.Conn
	admin *redis.Client
	done  chan struct{}

	mu      sync.Mutex
	quotes  bool // MONITOR escapes quotes and backslashes; Valkey 8.1 does not
	marks   int
	synced  int // the last mark that was received
	writes  map[string][]history.Op
	scripts map[string]int // how many scripts ran for a token
}

// newRecordMonitor monitors a server until the end of the test.
func newRecordMonitor(t *testing.T, server *redistest.Server) *recordMonitor {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	w := &recordMonitor{
		tb: t, conn: conn, admin: server.Client(t), done: make(chan struct{}),
		writes: map[string][]history.Op{}, scripts: map[string]int{},
	}
	go w.read()
	t.Cleanup(func() {
		_ = conn.Close()
		<-w.done
	})
	if _, err := conn.Write([]byte(redistest.SignIn() + "MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	w.sync(t)
	return w
}

func (w *recordMonitor) sync(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	w.marks++
	mark := w.marks
	w.mu.Unlock()
	suite.Eventually(t, "the monitor receives the mark", func() bool {
		w.admin.Echo(t.Context(), fmt.Sprintf("mark:%d:\"", mark))
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.synced >= mark
	})
}

func (w *recordMonitor) of(lock string) []history.Op {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes["{"+lock+"}:r"])
}

func (w *recordMonitor) ran(token string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scripts[token]
}

func (w *recordMonitor) read() {
	defer close(w.done)
	lines := bufio.NewReader(w.conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		w.add(line)
	}
}

// argument finds the arguments of a command, as MONITOR quotes them.
var argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// arguments returns the arguments in a line of MONITOR. If MONITOR does not escape, only
// an argument of printable bytes without quotes is exact: an answer is not.
func (w *recordMonitor) arguments(line string) []string {
	if !w.quotes {
		_, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\"\r\n"), `] "`)
		return strings.Split(quoted, `" "`)
	}
	var all []string
	for _, quoted := range argument.FindAllString(line, -1) {
		if text, err := strconv.Unquote(quoted); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// answer returns the answer in a record that a script has written. If MONITOR does not
// escape, the answer is read from Redis.
func (w *recordMonitor) answer(record, shown string) string {
	if w.quotes {
		return storetest.DecodeRecord(shown)["p"]
	}
	return storetest.RecordAt(w.tb, w.admin, record)["p"]
}

func (w *recordMonitor) add(line string) {
	inScript := strings.Contains(line, " lua] ")
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(line, `"mark:`) {
		w.quotes = strings.Contains(line, `:\"`)
	}
	command := w.arguments(line)
	if len(command) < 2 {
		return
	}
	name := strings.ToUpper(command[0])
	switch {
	case name == "ECHO":
		_, _ = fmt.Sscanf(command[1], "mark:%d", &w.synced)
	case strings.HasPrefix(name, "EVAL"):
		w.scripts[tokenOf(command)]++
	case inScript && strings.HasSuffix(command[1], ":r"):
		w.addWrite(name, command[1], command[2:])
	}
}

// kinds are the writes that bring a record into a state of record.lua.
var kinds = map[string]history.Kind{"R": history.Begin, "D": history.Commit, "U": history.Seal, "A": history.Abort}

// beginning matches the fields of a record that are exact in any line of MONITOR: s, t, n and u. The last group
// has the others.
var beginning = regexp.MustCompile(`(?s)^([RDUA])([^ ]+) \d*(?:,(\d*),\d*,\d*,(1?))? (.*)$`)

func (w *recordMonitor) addWrite(name, record string, arguments []string) {
	switch name {
	case "DEL":
		w.writes[record] = append(w.writes[record], history.Op{Kind: history.Forget})
	case "SET":
		fields := beginning.FindStringSubmatch(arguments[0])
		if fields == nil {
			w.tb.Errorf("a script has written %q", arguments[0])
			return
		}
		made := history.Op{Kind: kinds[fields[1]], Lease: fields[2]} // an abort after a killed attempt keeps the state R
		switch {
		case fields[4] != "": // an unknown outcome was reported
			return
		case made.Kind == history.Begin:
			made.Number, _ = strconv.Atoi(fields[3])
		case made.Kind == history.Commit:
			made.Record = w.answer(record, arguments[0])
		case made.Kind == history.Abort && strings.Contains(fields[5], " "+made.Lease+" "): // x has the token
			made = history.Op{Kind: history.Forget}
		}
		w.writes[record] = append(w.writes[record], made)
	}
}
