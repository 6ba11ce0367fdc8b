package fiberlock_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// upload returns a form with a file, and its Content-Type. Each form has another boundary.
func upload(t *testing.T, account, file string) (body, contentType string) {
	t.Helper()
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for n := range 20 { // which Go's maps have in another order each time
		_ = w.WriteField(fmt.Sprint("field-", n), "value")
	}
	_ = w.WriteField("account", account)
	part, err := w.CreateFormFile("upload", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, file)
	_ = w.Close()
	return text.String(), w.FormDataContentType()
}

// The key and the fingerprint cover an upload, of which Fiber keeps no bytes, and the handler reads it.
func TestUploads(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]fiber.Config{
		"parsed by Fiber": {},
		"not parsed":      {DisablePreParseMultipartForm: true},
		"streamed":        {StreamRequestBody: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t).Locker
			app := fiber.New(config)
			app.Post("/", fiberlock.Idempotent(locks, byKey), fiberlock.Middleware(locks, fiberlock.Form("account").Named("account")), func(c fiber.Ctx) error {
				lease, _ := core.LeaseFromContext(c)
				file, err := c.FormFile("upload")
				if err != nil || lease.Key() != "account:"+c.FormValue("account") {
					t.Errorf("%v, the lock %q", err, lease.Key())
				}
				return c.SendString(fmt.Sprint(file.Size))
			})
			url, client := listen(t, app), newClient(t)
			pay := func(account, file string) *httptest.ResponseRecorder {
				body, contentType := upload(t, account, file)
				return send(t, client, newRequest(t, http.MethodPost, url, body, "Content-Type: "+contentType, "Idempotency-Key: k"))
			}
			for range 3 {
				if w := pay("42", "text"); w.Code != http.StatusOK || w.Body.String() != "4" {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
			for _, other := range []string{"43 text", "42 none"} {
				account, file, _ := strings.Cut(other, " ")
				adaptertest.WantProblem(t, pay(account, file), http.StatusUnprocessableEntity, "mismatch")
			}
			adaptertest.WantProblem(t, pay("42", strings.Repeat("long", 1<<18)), http.StatusRequestEntityTooLarge, "body_too_large")
		})
	}
}

// What a client has compressed may have any length.
func TestCompressedUploadIsNotDecompressed(t *testing.T) {
	t.Parallel()
	body, contentType := upload(t, "42", "text")
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	app := fiber.New()
	app.Post("/", fiberlock.Middleware(locktest.New(t).Locker, fiberlock.Form("account")), mustNotRun(t))
	r := newRequest(t, http.MethodPost, "/", compressed.String(), "Content-Type: "+contentType, "Content-Encoding: gzip")
	adaptertest.WantProblem(t, answerOf(app, r), http.StatusBadRequest, "invalid_key")
}

// A body that Fiber streams is read up to the limit, and is there for the handler.
func TestStreamedBody(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{StreamRequestBody: true})
	read := map[string]func(c fiber.Ctx) string{
		"/body":   func(c fiber.Ctx) string { return string(c.Body()) },
		"/stream": func(c fiber.Ctx) string { body, _ := io.ReadAll(c.Request().BodyStream()); return string(body) },
	}
	const limit = 8 << 10 // more than Fiber reads before the handler
	for path, readBody := range read {
		app.Post(path, fiberlock.Middleware(locktest.New(t).Locker, core.All(fiberlock.JSONField("a"), fiberlock.JSONField("b")), core.WithMaxBody(limit)),
			func(c fiber.Ctx) error { return c.SendString(readBody(c)) })
	}
	url, client := listen(t, app), newClient(t)
	body := `{"a":1,"b":2,"c":"` + strings.Repeat("c", limit-20) + `"}`
	for path := range read {
		for _, chunked := range []bool{false, true} {
			request := func(body string) *http.Request {
				r := newRequest(t, http.MethodPost, url+path, body)
				if chunked {
					r.ContentLength = -1
				}
				return r
			}
			if w := send(t, client, request(body)); w.Code != http.StatusOK || w.Body.String() != body {
				t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
			}
			longer := send(t, client, request(body+strings.Repeat(" ", 100)))
			adaptertest.WantProblem(t, longer, http.StatusRequestEntityTooLarge, "body_too_large")
		}
	}
}
