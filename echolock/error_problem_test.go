package echolock

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

func TestProblemIsRenderedOnlyAsJSON(t *testing.T) {
	t.Parallel()
	p := &problem{refusal: adapter.RefusalOf(core.ErrBusy)}
	if text := fmt.Sprint(p); text != "busy" || p.rendered.Load() {
		t.Errorf("as a text %q, rendered %v", text, p.rendered.Load())
	}
	text, err := json.Marshal(p)
	if string(text)+"\n" != string(adapter.Problem(p.refusal)) || err != nil || !p.rendered.Load() {
		t.Errorf("%s, %v, rendered %v", text, err, p.rendered.Load())
	}
}
