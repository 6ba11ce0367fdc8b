package sidebyside

import (
	"maps"
	"strings"

	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
)

// turn gives all records the form that the tree of the process knows: a hash in the old tree, and a string in this one. So the
// cases compare what the records say.
func (s *scenario) turn(to *subprocess.Process) {
	s.Helper()
	if s.keepsForm {
		return
	}
	ctx := s.Context()
	for _, name := range s.rdb.Keys(ctx, "*:r").Val() {
		isHash := s.rdb.Type(ctx, name).Val() == "hash"
		if isHash == (to != s.now) {
			continue
		}
		fields, left := maps.Clone(storetest.RecordAt(s, s.rdb, name)), s.rdb.PTTL(ctx, name).Val()
		attempt := script.Digest(fields["t"])
		if resolved, ok := strings.CutPrefix(fields["t"], "resolved:"); ok {
			attempt = resolved
		}
		pipe := s.rdb.TxPipeline()
		pipe.Del(ctx, name)
		if isHash {
			if reference, ok := strings.CutPrefix(fields["r"], attempt[:8]); ok {
				fields["r"] = reference
			} else {
				delete(fields, "r")
			}
			if fields["u"] != "" {
				fields["u"] = "1"
			}
			pipe.Set(ctx, name, storetest.EncodeRecord(fields), left)
		} else {
			if fields["r"] != "" {
				fields["r"] = attempt[:8] + fields["r"]
			}
			if fields["u"] != "" {
				fields["u"] = attempt
			}
			pipe.HSet(ctx, name, fields)
			pipe.PExpire(ctx, name, left)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			s.Fatal(err)
		}
	}
}

// otherForms is the case of a process that meets a record of the other form: it runs nothing.
func otherForms(s *scenario) {
	s.keepsForm = true
	name := "{reqlock:i:" + s.keyOfPayment() + "}:r"
	s.send(s.first, "/pay", "twelve", "201")
	stored := s.rdb.Get(s.Context(), name).Val()
	s.send(s.second, "/pay", "twelve", "503 unavailable")
	if s.rdb.Get(s.Context(), name).Val() != stored {
		s.Error("the old process has changed the record")
	}
	s.send(s.first, "/pay", "twelve", "201 replayed")
	s.delete(name)
	s.send(s.second, "/pay", "twelve", "201")
	s.send(s.first, "/pay", "twelve", "409 completed_unreplayable")
	s.send(s.second, "/pay", "twelve", "201 replayed")
}
