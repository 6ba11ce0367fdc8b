// Package console tests the pages of package console in a browser.
package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The pages have no complaint of the browser, above all none about their policy, and fit a phone.
func TestPagesFitTheirPolicyAndAPhone(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t), newSite(t)
	for name, url := range s.pages(t) {
		want := int64(http.StatusOK)
		if name == "no lock" {
			want = http.StatusNotFound
		}
		for _, width := range []int64{1280, 375} {
			b.do(chromedp.EmulateViewport(width, 800))
			if status := b.open(url); status != want {
				t.Errorf("%s: %d", name, status)
			}
			if wrong := strings.TrimSpace(b.complaints()); wrong != "" && want == http.StatusOK {
				t.Errorf("%s: %s", name, wrong)
			}
			if wide := ask[int64](b, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: %d pixels wide on a screen of %d", name, wide, width)
			}
		}
	}
	b.open(s.url)
	if n := ask[int](b, "document.querySelectorAll('#locks tbody tr').length"); n != rows {
		t.Errorf("%d rows", n)
	}
}

// A page changes by itself. What has the focus keeps it, and what was typed stays.
func TestAPageChangesByItself(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t), newSite(t)
	b.open(s.url)
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "typed"))
	b.do(chromedp.Focus(chromedp.CSS("#lock-" + s.lock)))
	before := b.text("#first .tiles")
	lease := must(s.waiter.Lock(t.Context(), "account:new"))(t)
	suite.Eventually(t, "the page shows one more lock", func() bool { return b.text("#first .tiles") != before })
	if focus := ask[string](b, "document.activeElement.id"); focus != "lock-"+s.lock {
		t.Errorf("the focus is at %q", focus)
	}
	if typed := ask[string](b, "document.getElementById('q').value"); typed != "typed" {
		t.Errorf("the field has %q", typed)
	}
	if said := ask[string](b, "document.getElementById('said').textContent"); !strings.Contains(said, "locks held, 12 wait, 5 unknown outcomes") {
		t.Errorf("a screen reader gets %q", said)
	}
	// While it is paused, it does not change.
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	if pressed := ask[string](b, "document.getElementById('pause').getAttribute('aria-pressed')"); pressed != "true" {
		t.Errorf("the page is not paused: %s", pressed)
	}
	if wrong := b.complaints(); wrong != "" {
		t.Error(wrong)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// An operator finds an unknown outcome and resolves it, and revokes a lease, without JavaScript.
func TestPagesWorkWithoutJavaScript(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t), newSite(t)
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open(s.url)
	if hidden := ask[bool](b, "document.getElementById('pause').hidden"); !hidden {
		t.Error("a button does nothing without JavaScript")
	}
	b.submit(chromedp.CSS("#attempt-" + s.first))
	b.do(chromedp.Click(chromedp.CSS("input[value=done]")), chromedp.SendKeys(chromedp.CSS("#reason"), "the charge is there"))
	if status := b.submit("form.act button"); status != http.StatusOK || !strings.Contains(b.text("main"), "The request is done.") {
		t.Errorf("%d: %s", status, b.text("main"))
	}
	b.submit("a.brand")
	b.submit(chromedp.CSS("#lock-" + s.lock))
	b.do(chromedp.SendKeys(chromedp.CSS("#reason-revoke"), "it hangs"), chromedp.Click(chromedp.CSS("input[name=confirm][type=checkbox]")))
	if status := b.submit("form.act button"); status != http.StatusOK || !strings.Contains(b.text("main"), "A lease is revoked.") {
		t.Errorf("%d: %s", status, b.text("main"))
	}
	suite.AwaitClosed(t, "the holder is told", s.lost)
	if wrong := b.complaints(); wrong != "" {
		t.Error(wrong)
	}
}

// A lock is freed at once only after the operator has typed its digest.
func TestFreeingAtOnceIsConfirmed(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t), newSite(t)
	b.open(s.url + "?lock=" + s.lock)
	b.do(chromedp.SendKeys(chromedp.CSS("#reason-free"), "the pod is gone"), chromedp.SendKeys(chromedp.CSS("#confirm-free"), "yes"),
		chromedp.Click(chromedp.CSS("form.act:last-of-type button")))
	if valid := ask[bool](b, "document.getElementById('confirm-free').validity.valid"); valid {
		t.Error("the form accepts another text than the digest")
	}
	b.do(chromedp.SetValue(chromedp.CSS("#confirm-free"), s.lock))
	if status := b.submit("form.act:last-of-type button"); status != http.StatusOK || !strings.Contains(b.text("main"), "is no longer out.") {
		t.Errorf("%d: %s", status, b.text("main"))
	}
	suite.AwaitClosed(t, "the holder is told", s.lost)
	next := suite.Receive(t, "the next holder has the lock", s.next)

	// The holder of the form has changed meanwhile: the page says so, and the form does nothing.
	b.open(s.url + "?lock=" + s.lock)
	if err := next.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the page says that the form is stale", func() bool { return ask[bool](b, "!document.querySelector('[data-stale]').hidden") })
	b.do(chromedp.SendKeys(chromedp.CSS("#reason-revoke"), "it hangs"), chromedp.Click(chromedp.CSS("input[name=confirm][type=checkbox]")))
	if status := b.submit("form.act button"); status != http.StatusConflict || !strings.Contains(b.text("#alert"), "Nothing was done.") {
		t.Errorf("%d: %s", status, b.text("main"))
	}
}

// The page of another site sends the right form, and is refused.
func TestAnotherSiteCannotAct(t *testing.T) {
	t.Parallel()
	b, s := newBrowser(t), newSite(t)
	record := must(s.inspector.Record(t.Context(), s.first))(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<form method="post" action="` + s.url + `?attempt=` + s.first + `"><input name="attempt" value="` + record.Attempt.String() +
			`"><input name="resolution" value="not_done"><input name="reason" value="x"><button>win</button></form>`))
	}))
	defer evil.Close()
	b.open(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1))
	if status := b.submit("button"); status != http.StatusForbidden || !strings.Contains(b.text("main"), "another site") {
		t.Errorf("%d: %s", status, b.text("main"))
	}
	if now := must(s.inspector.Record(t.Context(), s.first))(t); now.State != record.State {
		t.Errorf("the request is %v now", now.State)
	}
}

// A finding is what axe-core says about a page.
type finding struct {
	ID, Impact, Help, HTML string
}

// axe returns the program axe-core, which npm installs.
func axe(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		suite.SkipOrFail(t, "there is no npm: %v", err)
	}
	dir := t.TempDir()
	const install = `cp package.json package-lock.json "$0" && cd "$0" && npm ci --no-audit --no-fund --ignore-scripts`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", install, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(must(os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js")))(t))
}

// People who use a keyboard, a screen reader or a screen without colors can use each page.
func TestAxeFindsNothingSerious(t *testing.T) {
	t.Parallel()
	b, s, program := newBrowser(t), newSite(t), axe(t)
	const search = `axe.run({resultTypes: ["violations"]}).then((found) => found.violations
		.flatMap((v) => v.nodes.map((n) => ({ID: v.id, Impact: v.impact, Help: v.help, HTML: n.html}))))`
	for _, scheme := range []string{"light", "dark"} {
		b.colors(scheme)
		for name, url := range s.pages(t) {
			for _, width := range []int64{1280, 375} {
				b.do(chromedp.EmulateViewport(width, 800))
				b.open(url)
				b.do(chromedp.Evaluate[chromedp.Void](program))
				for _, f := range ask[[]finding](b, search) {
					if f.Impact == "serious" || f.Impact == "critical" {
						t.Errorf("%s, %s, %d pixels: %+v", name, scheme, width, f)
					} else {
						t.Logf("%s, %s, %d pixels: %+v", name, scheme, width, f)
					}
				}
			}
		}
	}
}
