package redistest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRightOfReplicasIsDocumentedAndNotGeneral(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{
		"core/doc.go":        "WithReplicas takes " + ReplicaRights + ".",
		"docs/production.md": "`WithReplicas` needs `" + ReplicaRights + "`, and `NewQuorum` needs `" + QuorumRights + "`.",
	} {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), says) {
			t.Errorf("%s does not say %q", path, says)
		}
	}
	if strings.Contains(Rights+ClusterRights, ReplicaRights) {
		t.Errorf("%s is granted to all", ReplicaRights)
	}
}

// The documentation quotes the rule of the tests.
func TestTheRuleIsDocumentedWordByWord(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"docs/production.md", "core/doc.go"} {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{Rights, ClusterRights} {
			if !strings.Contains(string(text), " "+rule+"\n") && !strings.Contains(string(text), "\t"+rule+"\n") {
				t.Errorf("%s does not say %q", path, rule)
			}
		}
	}
}

func TestTheRuleOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"app:":  "~app:* ~{app:* &app:* &{app:*",
		"a*[b?": `~a\*\[b\?* ~{a\*\[b\?* &a\*\[b\?* &{a\*\[b\?*`,
		"":      "~* &*",
	} {
		if got := strings.Join(PrefixRights(prefix), " "); got != want {
			t.Errorf("%q: got %s, want %s", prefix, got, want)
		}
	}
}
