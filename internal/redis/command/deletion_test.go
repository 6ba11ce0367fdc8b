package command

import (
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A native release counts as done only by the replies to both commands.
func TestReplyToDeleteIfEqual(t *testing.T) {
	t.Parallel()
	refused, moved := serverError("NOPERM this user has no permissions"), serverError("ASK 1 127.0.0.1:7000")
	for name, test := range map[string]struct {
		deleted, elements    int64
		err, second, ofBatch error
		want                 any
		wantErr              error
	}{
		"nothing deleted":                   {want: NotDeleted},
		"nothing deleted, and tokens wait":  {elements: 1, want: NotDeleted},
		"deleted":                           {deleted: 1, want: Deleted},
		"deleted, and a token waits":        {deleted: 1, elements: 1, want: DeletedBefore},
		"deleted, and the second is denied": {deleted: 1, second: refused, ofBatch: refused, want: DeletedBefore},
		"deleted, and the second is lost":   {deleted: 1, second: io.EOF, ofBatch: io.EOF, wantErr: io.EOF},
		"deleted, and the second has moved": {deleted: 1, second: moved, ofBatch: moved, wantErr: moved},
		"denied":                            {err: refused, ofBatch: refused, wantErr: refused},
		"lost":                              {err: io.EOF, second: io.EOF, ofBatch: io.EOF, wantErr: io.EOF},
		"not sent":                          {ofBatch: io.EOF, wantErr: io.EOF},
		"another of the batch is denied":    {deleted: 1, ofBatch: refused, want: Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &DeleteIfEqual{}
			c.Reset("k", "token", "q")
			c.SetVal(test.deleted)
			c.SetErr(test.err)
			second, _ := c.Second().(*length)
			second.SetVal(test.elements)
			second.SetErr(test.second)
			if got, err := c.Reply(test.ofBatch); got != test.want || !errors.Is(err, test.wantErr) {
				t.Errorf("%v, %v, want %v, %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

// serverError is an error that a server has sent.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError marks the error.
func (serverError) RedisError() {}

var _ redis.Error = serverError("")
