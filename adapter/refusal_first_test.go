package adapter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// The reference of the first request may be a text of a client. It is one member of the document.
func TestProblemQuotesFirst(t *testing.T) {
	t.Parallel()
	const first = `1","code":"paid","x":"</script>`
	body := adapter.Problem(core.Refusal{Code: "busy", HTTP: 409, Detail: "busy", First: first})
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil || members["first"] != first || members["code"] != "busy" || members["x"] != nil {
		t.Errorf("%s, %v", body, err)
	}
	if strings.Contains(string(body), "</script>") || strings.Count(string(body), "\n") != 1 {
		t.Errorf("%s", body)
	}
	if body := string(adapter.Problem(core.Refusal{Code: "busy", HTTP: 409, Detail: "busy"})); strings.Contains(body, "first") {
		t.Error(body)
	}
}
