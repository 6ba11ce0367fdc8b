package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience is how long a test may use a browser.
const patience = 5 * time.Minute

// A browser is a Chromium with one page.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	wrong []string // what the browser complains about: a policy that was violated, an exception, a file that is missing
}

// newBrowser starts a browser that ends with the test. It skips the test where Chromium is missing.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		suite.SkipOrFail(t, "there is no chromium")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true)}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses root
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(options...), chromedp.WithErrorf(t.Logf), chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	command(b, log.Enable, cdp.Empty{})
	command(b, audits.Enable, cdp.Empty{})
	return b
}

// command sends a command to the browser.
func command[P, R any](b *browser, c cdp.Command[P, R], parameters P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, c, parameters); err != nil {
		b.t.Fatal(err)
	}
}

// note keeps what the browser complains about.
func (b *browser) note(event any) {
	var text string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		text = fmt.Sprint(e.Entry.Level, ": ", e.Entry.Text, " ", e.Entry.URL)
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint("exception: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.URL)
	case *audits.EventIssueAdded:
		text = fmt.Sprint("issue: ", e.Issue.Code)
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			text += ": " + d.ViolatedDirective + " " + d.BlockedURL
		}
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, text)
}

// complaints returns what the browser has complained about since the last call.
func (b *browser) complaints() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := strings.Join(b.wrong, "\n")
	b.wrong = nil
	return wrong
}

// do does something with the page.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v: %s", err, b.complaints())
	}
}

// open opens a page, and returns its status.
func (b *browser) open(url string) int64 {
	b.t.Helper()
	return must(chromedp.Run(b.ctx, chromedp.NavigateResponse(url)))(b.t).Status
}

// submit presses a button or a link that leads to another page, and returns its status.
func (b *browser) submit(button chromedp.CSS) int64 {
	b.t.Helper()
	return must(chromedp.RunResponse(b.ctx, chromedp.Click(button)))(b.t).Status
}

// text returns the text of a part of the page: at once, because the page replaces its parts.
func (b *browser) text(part string) string {
	b.t.Helper()
	return ask[string](b, "document.querySelector('"+part+"').innerText")
}

// ask returns the value of an expression in the page.
func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	return must(chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)))(b.t)
}

// colors makes pages dark or light.
func (b *browser) colors(scheme string) {
	b.t.Helper()
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}
