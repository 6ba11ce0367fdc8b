package main

import (
	"context"
	"testing"
)

// TestPaymentAnswers sends payments one after the other, many of them with the same
// key.
func TestPaymentAnswers(t *testing.T) {
	t.Parallel()
	statuses := map[protocol]struct{ done, busy, badKey, mismatch string }{
		httpProtocol: {"200", "409", "400", "422"},
		grpcProtocol: {"OK", "ABORTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION"},
	}
	for _, on := range allFrameworks() {
		t.Run(on.Name, func(t *testing.T) {
			t.Parallel()
			s := newTestSite(t, on)
			client, err := on.Dial(s.server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer client.close()
			is := statuses[on.Protocol]
			tests := []struct {
				name          string
				locked        bool // alice's account
				key, from, to string
				cents         int64
				status        string
				replayed      bool
			}{
				{"first", false, "one", "alice", "bob", 1, is.done, false},
				{"again", false, "one", "alice", "bob", 1, is.done, true},
				{"again, of a locked account", true, "one", "alice", "bob", 1, is.done, true},
				{"another, of a locked account", true, "two", "alice", "bob", 1, is.busy, false},
				{"that one again", false, "two", "alice", "bob", 1, is.done, false},
				{"another one with the first key", false, "one", "alice", "bob", 2, is.mismatch, false},
				{"another user's with the first key", false, "one", "bob", "alice", 1, is.done, false},
				{"without key", false, "", "alice", "bob", 1, is.badKey, false},
			}
			for _, test := range tests {
				pay := func(ctx context.Context) error {
					got, err := client.pay(ctx, test.key, test.from, test.to, test.cents)
					if got.Status != test.status || got.Replayed != test.replayed {
						t.Errorf("%s: %s, replayed: %t", test.name, got.Status, got.Replayed)
					}
					return err
				}
				if test.locked {
					err = s.locks.Do(t.Context(), "account:alice", pay)
				} else {
					err = pay(t.Context())
				}
				if err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
			}
			if made := s.bank.transfersMade(); made != 3 {
				t.Errorf("%d transfers were made", made)
			}
		})
	}
}
