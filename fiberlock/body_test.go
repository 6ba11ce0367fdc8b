package fiberlock_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
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
			pay := func(account, file string) (*http.Response, string) {
				body, contentType := upload(t, account, file)
				return send(t, client, newRequest(t, http.MethodPost, url, body, "Content-Type: "+contentType, "Idempotency-Key: k"))
			}
			for range 3 {
				if answer, body := pay("42", "text"); answer.StatusCode != http.StatusOK || body != "4" {
					t.Errorf("%d %s", answer.StatusCode, body)
				}
			}
			for _, other := range []string{"43 text", "42 none"} {
				account, file, _ := strings.Cut(other, " ")
				if answer, _ := pay(account, file); answer.StatusCode != http.StatusUnprocessableEntity {
					t.Errorf("another upload: %d", answer.StatusCode)
				}
			}
			if answer, body := pay("42", strings.Repeat("long", 1<<18)); answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("a long upload: %d %s", answer.StatusCode, body)
			}
		})
	}
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
			if answer, got := send(t, client, request(body)); answer.StatusCode != http.StatusOK || got != body {
				t.Errorf("%s: %d, %d bytes", path, answer.StatusCode, len(got))
			}
			if answer, got := send(t, client, request(body+strings.Repeat(" ", 100))); answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: a longer body: %d %s", path, answer.StatusCode, got)
			}
		}
	}
}
