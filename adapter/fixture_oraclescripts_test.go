package adapter

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A script is a handler that reports the results of its calls.
type script func(w http.ResponseWriter, r *http.Request, say func(...any))

// scripts are what handlers do with their ResponseWriter.
var scripts = map[string]script{
	"nothing": func(http.ResponseWriter, *http.Request, func(...any)) {},
	"a header and nothing else": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		w.Header().Set("Location", "/1")
		w.Header().Del("X-Outer")
	},
	"a body without a status": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(w.Write([]byte("<html>")))
		say(io.WriteString(w, "text"))
	},
	"a status without a body": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.WriteHeader(http.StatusCreated)
		say(w.Write(nil))
	},
	"a status, headers and a body": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header()["Link"] = []string{"</a>", "</b>"}
		w.Header().Set("X-Outer", "the handler's")
		w.WriteHeader(http.StatusCreated)
		say(fmt.Fprint(w, `{"id":7}`))
	},
	"headers after the status": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Etag", "1")
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("Etag", "2")
		w.Header().Set("Location", "/late")
		w.Header().Del("X-Outer")
		say(w.Write([]byte("late")))
	},
	"two statuses": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		w.WriteHeader(http.StatusConflict)
		w.WriteHeader(http.StatusOK)
	},
	"two statuses, the first OK": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Location", "/late")
		w.WriteHeader(http.StatusConflict)
	},
	"the lowest and the highest status": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(panicOf(func() { w.WriteHeader(99) }))
		say(panicOf(func() { w.WriteHeader(100) }))
		say(panicOf(func() { w.WriteHeader(999) }))
	},
	"a status after the body": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(w.Write([]byte("body")))
		w.WriteHeader(http.StatusTeapot)
	},
	"no content, with a body": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.WriteHeader(http.StatusNoContent)
		say(w.Write([]byte("body")))
		say(w.Write(nil))
	},
	"not modified": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Etag", "1")
		w.WriteHeader(http.StatusNotModified)
		say(w.Write([]byte("body")))
	},
	"early hints": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Set("Etag", "1")
		w.WriteHeader(http.StatusCreated)
		w.WriteHeader(http.StatusEarlyHints)
		say(w.Write([]byte("body")))
	},
	"more than declared": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "4")
		say(w.Write([]byte("bo")))
		say(w.Write([]byte("dy!")))
		say(w.Write([]byte("dy")))
	},
	"less than declared": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "9")
		say(w.Write([]byte("body")))
	},
	"as much as declared": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "4")
		say(w.Write([]byte("body")))
	},
	"more than nothing declared": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "0")
		say(w.Write([]byte("body")))
	},
	"a malformed length": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "many")
		say(w.Write([]byte("body")))
	},
	"no Content-Type on purpose": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header()["Content-Type"] = nil
		say(w.Write([]byte("<html>")))
	},
	"closes the connection": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Connection", "close")
		say(w.Write([]byte("body")))
	},
	"a body in many pieces": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		for range 5000 {
			_, _ = w.Write([]byte("piece"))
		}
	},
	"a copy": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(io.Copy(w, strings.NewReader(strings.Repeat("copy", 2000))))
	},
	"a copy that breaks off": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(io.Copy(w, io.MultiReader(strings.NewReader("copy"), failingReader{})))
	},
	"http.Error": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		http.Error(w, "no funds", http.StatusUnprocessableEntity)
	},
	"http.Redirect": func(w http.ResponseWriter, r *http.Request, _ func(...any)) {
		http.Redirect(w, r, "/there", http.StatusSeeOther)
	},
	"http.ServeContent": func(w http.ResponseWriter, r *http.Request, _ func(...any)) {
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("a", 3000)))
	},
	"pieces": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"one", "two"} {
			say(w.Write([]byte(piece)))
			say(http.NewResponseController(w).Flush())
		}
		w.(http.Flusher).Flush()
		w.Header().Set("Location", "/late")
	},
	"a flush alone": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Etag", "1")
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusTeapot)
		say(w.Write([]byte("body")))
	},
	"no content, after a flush": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.WriteHeader(http.StatusNoContent)
		w.(http.Flusher).Flush()
		say(w.Write([]byte("body")))
	},
	"trailers": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Trailer", "Etag")
		say(w.Write([]byte("body")))
		w.Header().Set("Etag", "1")
		w.Header().Set("X-Not-Announced", "1")
	},
	"a trailer that was not announced": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(w.Write([]byte("body")))
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"Etag", "1")
	},
	"a trailer in a short answer": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(w.Write([]byte("body")))
		w.Header().Set(http.TrailerPrefix+"Etag", "1")
	},
	"hijacks": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(hijack(w, "HTTP/1.1 418 Teapot\r\nContent-Length: 4\r\n\r\nbody"))
		w.WriteHeader(http.StatusOK)
		say(w.Write([]byte("more")))
		say(hijack(w, ""))
	},
	"hijacks after the status": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "8")
		w.WriteHeader(http.StatusCreated)
		say(w.Write([]byte("body")))
		say(http.NewResponseController(w).Flush())
		say(hijack(w, "more"))
	},
	"hijacks after a status that is not flushed": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Content-Length", "4")
		w.WriteHeader(http.StatusCreated)
		say(hijack(w, "body"))
	},
	"switches protocols": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "other")
		w.WriteHeader(http.StatusSwitchingProtocols)
		say(hijack(w, "other text"))
	},
	"deadlines and full duplex": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		controller := http.NewResponseController(w)
		say(controller.SetReadDeadline(time.Now().Add(time.Minute)))
		say(controller.SetWriteDeadline(time.Now().Add(time.Minute)))
		say(controller.EnableFullDuplex())
		_, pushes := w.(http.Pusher)
		say(pushes && w.(http.Pusher).Push("/style.css", nil) == nil)
	},
	"a status that is none": func(w http.ResponseWriter, _ *http.Request, say func(...any)) {
		say(panicOf(func() { w.WriteHeader(0) }))
		say(panicOf(func() { w.WriteHeader(1000) }))
		say(w.Write([]byte("body")))
	},
	"a panic": func(_ http.ResponseWriter, _ *http.Request, _ func(...any)) {
		panic(http.ErrAbortHandler)
	},
	"a panic in a stream": func(w http.ResponseWriter, _ *http.Request, _ func(...any)) {
		_, _ = w.Write([]byte("piece"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// hijack takes over a connection and writes on it.
func hijack(w http.ResponseWriter, text string) error {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, _ = rw.WriteString(text)
	return rw.Flush()
}
