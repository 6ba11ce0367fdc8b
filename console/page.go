package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// pages are the templates of the pages, by their names.
type pages map[string]*template.Template

// parsePages parses the templates.
func parsePages() (pages, error) {
	layout, err := template.New("layout.html").Funcs(funcs()).ParseFS(web, "web/layout.html", "web/parts.html")
	if err != nil {
		return nil, fmt.Errorf("reqlock: console: %w", err)
	}
	all := make(pages)
	for _, name := range []string{"overview", "lock", "attempt", "process", "processes", "outcomes", "problem"} {
		page, err := layout.Clone()
		if err == nil {
			page, err = page.ParseFS(web, "web/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("reqlock: console: %w", err)
		}
		all[name] = page
	}
	return all, nil
}

// A frame is what the layout of each page shows.
type frame struct {
	Title, Nav string
	Self       string // the address of the page, relative
	Fragment   bool   // only the parts that change are wanted
	Polls      bool   // the page changes by itself
	RawKeys    bool

	Notice  string // what an action has done, if what was read agrees
	Warning string // the same, if it has a risk
	Alert   string // why it has done nothing

	Trouble string    // of Redis
	DataAt  time.Time // when what is shown was read; zero if never
	DataAge time.Duration
	Said    string // the summary for screen readers
}

// framed are the types of pages: each embeds a frame.
type framed interface{ base() *frame }

func (f *frame) base() *frame { return f }

// render writes a page.
func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, name string, page framed) {
	f := page.base()
	q := r.URL.Query()
	f.Fragment, f.RawKeys = q.Has("fragment"), c.rawKeys
	q.Del("did")
	q.Del("ended")
	f.Self = "?" + q.Encode()
	var out bytes.Buffer
	if err := c.pages[name].Execute(&out, page); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(out.Bytes())
	}
}

// problem serves a page that says why there is no other one.
func (c *Console) problem(w http.ResponseWriter, r *http.Request, status int, text string) {
	c.render(w, r, status, "problem", &problemPage{frame: frame{Title: http.StatusText(status)}, Text: text})
}

type problemPage struct {
	frame

	Text string
}

// toPage answers a form with the address of a page, with more names and values. http.Redirect would write the path, which a proxy or
// http.StripPrefix may have changed.
func toPage(w http.ResponseWriter, name, value string, more ...string) {
	q := url.Values{name: {value}}
	for pair := range slices.Chunk(more, 2) {
		q.Set(pair[0], pair[1])
	}
	w.Header().Set("Location", "?"+q.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// showState fills what a frame says about Redis.
func (f *frame) showState(v view) {
	if v.failed != nil {
		f.Trouble = v.failed.Error()
	}
	if v.lists != nil {
		f.DataAt, f.DataAge = v.lists.at, time.Since(v.lists.at)
	}
}
