package ginlock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The handler has the same c.Writer as without the lock.
func TestWriterIsNotReplaced(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	var before gin.ResponseWriter
	r.Use(func(c *gin.Context) { before = c.Writer })
	r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		if c.Writer != before {
			t.Errorf("c.Writer is a %T", c.Writer)
		}
		teapot(t, c.Writer)
	})
	if status, _ := send(t, newServer(t, r), http.MethodGet, "/", "", ""); status != http.StatusTeapot {
		t.Errorf("status %d", status)
	}
}

// A body that Gin has kept before the lock needs no time after the wait.
func TestKeptBodyNeedsNoReadTimeout(t *testing.T) {
	t.Parallel()
	var warned int
	locks := locktest.New(t, core.WithWait(time.Minute), core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			warned++
		}
	}))
	lock := ginlock.Middleware(locks.Locker, literal)
	r := gin.New()
	r.Use(func(c *gin.Context) {
		short := &http.Server{ReadTimeout: time.Second}
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), http.ServerContextKey, short))
	})
	r.POST("/kept", func(c *gin.Context) { _ = c.ShouldBindBodyWithJSON(&payment{}) }, lock)
	r.POST("/unread", lock)
	server := newServer(t, r)
	for i, path := range []string{"/kept", "/unread"} {
		if send(t, server, http.MethodPost, path, gin.MIMEJSON, "{}"); warned != i {
			t.Errorf("%s: %d warnings", path, warned)
		}
	}
}

// A stream reaches its client piece by piece, and holds the lock to its end.
func TestStream(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	more := make(chan string)
	r := gin.New()
	r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		c.Stream(func(io.Writer) bool {
			text, open := <-more
			if open {
				c.SSEvent("step", text)
			}
			return open
		})
	})
	server := newServer(t, r)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		more <- "one" // the headers come with the first event
	}()
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	suite.AwaitClosed(t, "the first event is sent", sending)
	events := bufio.NewReader(answer.Body)
	event := func() string {
		name, _ := events.ReadString('\n')
		data, _ := events.ReadString('\n')
		_, _ = events.ReadString('\n')
		return strings.TrimSpace(name) + " " + strings.TrimSpace(data)
	}
	if got := event(); got != "event:step data:one" || adaptertest.IsFree(t, locks.Locker) {
		t.Errorf("event %q, held %v", got, !adaptertest.IsFree(t, locks.Locker))
	}
	more <- "two"
	if got := event(); got != "event:step data:two" || adaptertest.IsFree(t, locks.Locker) {
		t.Errorf("event %q, held %v", got, !adaptertest.IsFree(t, locks.Locker))
	}
	close(more)
	if _, err := events.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last event: %v", err)
	}
	suite.Eventually(t, "the key is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

func TestDisconnectEndsStreamAndLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	gone := make(chan bool, 1)
	r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		gone <- c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, "tick\n")
			return true
		})
	})
	server := newServer(t, r)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if adaptertest.IsFree(t, locks.Locker) {
		t.Error("the stream runs, and the key is free")
	}
	_ = answer.Body.Close()
	if !suite.Receive(t, "the stream ends", gone) {
		t.Error("the stream did not see its client go")
	}
	suite.Eventually(t, "the key is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

// The server removes the temporary files of an upload, although the handler has
// parsed it in another request that a middleware has replaced again.
func TestUploadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	files := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		uploads := 0
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "multipart-") {
				uploads++
			}
		}
		return uploads
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("id", "7")
	file, err := w.CreateFormFile("upload", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(file, strings.Repeat("text", 1<<18))
	_ = w.Close()

	locks := locktest.New(t)
	r := gin.New()
	r.MaxMultipartMemory = 1
	tracing := func(c *gin.Context) { // replaces the request once more, as otelgin does
		ctx := c.Request.Context()
		defer func() { c.Request = c.Request.WithContext(ctx) }()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
	r.POST("/", ginlock.Middleware(locks.Locker, ginlock.Form("id"), core.WithMaxBody(2<<20)), tracing, func(c *gin.Context) {
		upload, err := c.FormFile("upload")
		if err != nil || upload.Size != 1<<20 || files() != 1 {
			t.Errorf("upload %v, %v, %d files", upload, err, files())
		}
		ok(c)
	})
	status, text := send(t, newServer(t, r), http.MethodPost, "/", w.FormDataContentType(), form.String())
	if status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	suite.Eventually(t, "the file is removed", func() bool { return files() == 0 })
}
