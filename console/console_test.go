package console_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestEachAnswerForbidsWhatPagesDoNotNeed(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Reuse(t).Client(t))
	answers := []answer{post(t, s, "?find", nil), post(t, s, "?lock=abc", url.Values{"action": {"revoke"}}, "Sec-Fetch-Site", "cross-site")}
	for _, query := range []string{"", "?outcomes", "?processes", "?fragment", "?lock=none", "?attempt=none", "?process=none", "?asset=style.css", "?asset=script.js", "?asset=icon.svg", "?asset=lock.html"} {
		answers = append(answers, get(t, s, query))
	}
	for _, a := range answers {
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"Cache-Control":           "no-store",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "same-origin",
		} {
			if got := a.Header().Get(name); got != want {
				t.Errorf("%d: %s is %q", a.Code, name, got)
			}
		}
		if inline := regexp.MustCompile(`<script>|<style|\sstyle="|\son\w+="`).FindString(a.Body.String()); inline != "" {
			t.Errorf("%d: the page has %q, which its policy forbids", a.Code, inline)
		}
	}
	get(t, s, "?asset=lock.html").want(t, http.StatusNotFound)
	get(t, s, "?process=none").want(t, http.StatusNotFound)
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Reuse(t).Client(t))
	for method, status := range map[string]int{http.MethodHead: http.StatusOK, http.MethodPut: http.StatusMethodNotAllowed, http.MethodPost: http.StatusBadRequest} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		if w.Code != status || (w.Body.Len() > 0) == (method == http.MethodHead) {
			t.Errorf("%s: %d, %d bytes", method, w.Code, w.Body.Len())
		}
	}
}

// Each address in a page leads to a page, wherever the Console is.
func TestAddressesAreRelative(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	register(t, rdb, processOf(lease), "payments", []string{s.lock(t, "k").Key.String()}, nil)
	s.unknown(t, newLocker(t, rdb), "pay")
	address := regexp.MustCompile(`(?:href|src|action)="([^#"]*)"`)
	for path, mount := range map[string]func(mux *http.ServeMux){
		"/admin/locks/": func(mux *http.ServeMux) { mux.Handle("/admin/locks/", s) },
		"/admin/locks":  func(mux *http.ServeMux) { mux.Handle("/admin/locks", s) },
		"/stripped/":    func(mux *http.ServeMux) { mux.Handle("/stripped/", http.StripPrefix("/stripped/", s)) },
		"/stripped":     func(mux *http.ServeMux) { mux.Handle("/stripped", http.StripPrefix("/stripped", s)) },
		"/":             func(mux *http.ServeMux) { mux.Handle("/", s) },
	} {
		mux := http.NewServeMux()
		mount(mux)
		server := httptest.NewServer(mux)
		seen := make(map[string]bool)
		base := must(url.Parse(server.URL + path))(t)
		for todo := []*url.URL{base}; len(todo) > 0; todo = todo[1:] {
			at := todo[0]
			if seen[at.String()] {
				continue
			}
			seen[at.String()] = true
			status, _, body := ask(t, server, http.MethodGet, at.String(), "")
			if status != http.StatusOK || at.Path != path {
				t.Errorf("%s: %d", at, status)
			}
			for _, found := range address.FindAllStringSubmatch(body, -1) {
				if strings.HasPrefix(found[1], "https://github.com/") { // the runbook
					continue
				}
				todo = append(todo, at.ResolveReference(must(url.Parse(html.UnescapeString(found[1])))(t)))
			}
		}
		if len(seen) < 10 { // 3 lists, 3 files, a lock and its process, an attempt and its process
			t.Errorf("%s: %d pages", path, len(seen))
		}
		status, leadsTo, _ := ask(t, server, http.MethodPost, server.URL+path, "find=k")
		if want := path + "?lock=" + s.lock(t, "k").Key.String(); status != http.StatusOK || leadsTo != want {
			t.Errorf("%s: a form leads to %s: %d", path, leadsTo, status)
		}
		server.Close()
	}
}

// ask sends a request to a server. It returns the last answer, and its address after redirects.
func ask(t *testing.T, server *httptest.Server, method, address, form string) (status int, leadsTo, body string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form)))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	return got.StatusCode, got.Request.URL.RequestURI(), string(must(io.ReadAll(got.Body))(t))
}
