package httpreply_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	o := httpreply.RefusalOf(core.ErrBusy)
	d := httpreply.NewDocument(o)
	if text := fmt.Sprint(d); text != "busy" || d.Rendered() {
		t.Errorf("as a text %q, rendered %v", text, d.Rendered())
	}
	text, err := json.Marshal(d)
	if string(text)+"\n" != string(httpreply.Body(o)) || err != nil || !d.Rendered() {
		t.Errorf("%s, %v, rendered %v", text, err, d.Rendered())
	}
}
