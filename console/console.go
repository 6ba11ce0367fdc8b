package console

import (
	"bytes"
	"embed"
	"errors"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/inspect"
)

//go:embed web
var web embed.FS

// A Console is an http.Handler with the pages of one Redis. It keeps the last list, and needs no Close. It
// is safe for concurrent use.
type Console struct {
	settings

	inspector *inspect.Inspector
	board     *board
	pages     pages
	origin    *http.CrossOriginProtection
}

// New returns a Console of what the Inspector shows. It does no I/O. It returns an error for an Inspector
// that is nil, for an option with a value that is not allowed, and for WithActions without WithActor.
//
// Put your own authentication in front of it: see the package comment.
func New(i *inspect.Inspector, opts ...Option) (*Console, error) {
	if i == nil {
		return nil, errors.New("reqlock: console: the Inspector is nil")
	}
	var s settings
	for _, opt := range opts {
		if err := opt(&s); err != nil {
			return nil, err
		}
	}
	if s.canAct() && s.actor == nil {
		return nil, errors.New("reqlock: WithActions: WithActor is missing, which says who acts")
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	return &Console{settings: s, inspector: i, board: newBoard(i), pages: pages, origin: http.NewCrossOriginProtection()}, nil
}

// String hides what the Console keeps.
func (*Console) String() string { return "reqlock.Console" }

// GoString returns the same as String, for %#v.
func (c *Console) GoString() string { return c.String() }

// policy is the Content-Security-Policy: everything comes from the Console itself, and nothing is inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP serves a page for GET, and carries out an action for POST.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send the Origin "null" with a form
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		c.get(w, r)
	case http.MethodPost:
		c.post(w, r)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		c.problem(w, r, http.StatusMethodNotAllowed, "The method is not allowed.")
	}
}

// get serves the page that the query names.
func (c *Console) get(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Has("asset"):
		c.asset(w, r, q.Get("asset"))
	case q.Has("lock"):
		c.showLock(w, r, q.Get("lock"), answer{did: q.Get("did"), ended: q.Get("ended")})
	case q.Has("attempt"):
		c.showAttempt(w, r, q.Get("attempt"), answer{did: q.Get("did")})
	case q.Has("process"):
		c.showProcess(w, r, q.Get("process"))
	case q.Has("processes"):
		c.showProcesses(w, r)
	case q.Has("outcomes"):
		c.showOutcomes(w, r)
	default:
		c.showOverview(w, r)
	}
}

// asset serves a file that the pages need. The path of the request has no say, other than in http.ServeFileFS.
func (c *Console) asset(w http.ResponseWriter, r *http.Request, name string) {
	types := map[string]string{"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}
	file, err := web.ReadFile("web/" + name)
	if err != nil || types[name] == "" {
		c.problem(w, r, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", types[name]+"; charset=utf-8")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file))
}

// post carries out what a form asks for.
func (c *Console) post(w http.ResponseWriter, r *http.Request) {
	if c.origin.Check(r) != nil {
		c.problem(w, r, http.StatusForbidden, "The request comes from a page of another site.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		c.problem(w, r, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	q := r.URL.Query()
	switch {
	case r.PostForm.Has("find"):
		c.find(w, r, r.PostForm.Get("find"))
	case q.Has("lock"):
		c.endLeases(w, r, q.Get("lock"))
	case q.Has("attempt"):
		c.resolve(w, r, q.Get("attempt"))
	default:
		c.problem(w, r, http.StatusBadRequest, "There is no such form.")
	}
}

// maxForm limits the size of a form: that of a lock with a thousand leases is below it.
const maxForm = 128 << 10
