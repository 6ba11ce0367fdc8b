package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A process is a service process, or has been one. It is safe for concurrent use.
type process struct {
	t      *testing.T
	number int
	orders orders
	proxy  *redistest.Proxy // between it and Redis, and nobody else
	child  *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // whole once done is closed
	done   chan struct{}
	err    error // set before done is closed

	mu        sync.Mutex
	said      map[string]int // how often
	listensAt string
}

// start starts a service process. It ends at the latest with the test.
func start(t *testing.T, o orders, proxy *redistest.Proxy) *process {
	t.Helper()
	o.Redis = proxy.Addr()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, number: o.Process, orders: o, proxy: proxy, done: make(chan struct{}), said: map[string]int{}}
	p.child = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestService$", "-test.timeout=30m")
	p.child.Env = append(os.Environ(), ordersEnv+"="+string(text))
	p.child.Stderr = &p.stderr
	stdin, err := p.child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.child.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		rest := p.listen(stdout)
		p.err = p.child.Wait()
		p.stderr.WriteString(rest)
	}()
	t.Cleanup(func() {
		_ = p.child.Process.Kill()
		<-p.done
	})
	return p
}

// listen takes in what the process says, and returns what else it has written.
func (p *process) listen(stdout io.Reader) (rest string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		words, said := strings.CutPrefix(lines.Text(), "@ ")
		if !said {
			rest += lines.Text() + "\n"
			continue
		}
		addr, listens := strings.CutPrefix(words, "listening ")
		p.mu.Lock()
		p.said[words]++
		if listens {
			p.listensAt = addr
		}
		p.mu.Unlock()
	}
	return rest
}

// told returns how often the process has said so of an attempt's key.
func (p *process) told(word, key string) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[word+" i:"+key]
}

// addr returns where it listens, as soon as it does; "" if it has ended before.
func (p *process) addr() (addr string) {
	await(p.t, "process "+strconv.Itoa(p.number)+" listens", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		addr = p.listensAt
		return addr != "" || p.dead()
	})
	return addr
}

func (p *process) dead() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process as a crash does, and returns when it is dead. To kill a
// dead one does nothing.
func (p *process) kill() {
	_ = p.child.Process.Kill()
	<-p.done
}

// stop ends the process in order, and fails the test if it has a fault to tell of.
func (p *process) stop() {
	p.t.Helper()
	_ = p.stdin.Close()
	<-p.done
	if p.err != nil {
		p.t.Errorf("process %d: %v\n%s", p.number, p.err, p.stderr.String())
	}
}
