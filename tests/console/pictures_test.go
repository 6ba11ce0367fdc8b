package console

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/reqlock/reqlock/core"
)

// write says that the pictures of docs/console.md are written again, and for how long a person looks first.
var write = flag.Duration("write", 0, "write docs/pictures/console-*.png, with charts of this time")

func TestPictures(t *testing.T) {
	if *write == 0 {
		t.Skip("no picture is wanted: see -write")
	}
	b, s := newBrowser(t), newSite(t)
	var leases []*core.Lease
	for begun, n := time.Now(), 0; time.Since(begun) < *write; n++ {
		if n%7 < 5 {
			leases = append(leases, must(s.waiter.Lock(t.Context(), fmt.Sprint("order:", n)))(t))
		} else if len(leases) > 2 {
			for _, lease := range leases[:2] {
				_ = lease.Release(t.Context())
			}
			leases = leases[2:]
		}
		b.open(s.url)
		b.do(chromedp.Sleep(2 * time.Second))
	}
	lock := s.url + "?lock=" + s.lock
	for _, p := range []struct {
		name, scheme, url string
		width, height     int64
	}{
		{"light", "light", s.url, 1000, 900},
		{"dark", "dark", lock, 1000, 900},
		{"phone", "light", s.url, 375, 800},
	} {
		b.colors(p.scheme)
		b.do(chromedp.EmulateViewport(p.width, p.height))
		b.open(p.url)
		picture := must(chromedp.Run(b.ctx, chromedp.CaptureScreenshot()))(t)
		if err := os.WriteFile("../../docs/pictures/console-"+p.name+".png", picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, lease := range leases {
		_ = lease.Release(t.Context())
	}
}
