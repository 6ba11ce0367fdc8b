package frameworks

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/reqlock/reqlock/core"
)

// A mutationResolver resolves the mutations.
type mutationResolver struct {
	locks    *core.Locker // a view with core.WithWait
	transfer func(ctx context.Context, account string) error
}

// Transfer resolves "transfer(account: ID!): Boolean!".
func (r *mutationResolver) Transfer(ctx context.Context, account string) (bool, error) {
	err := r.locks.Do(ctx, "account:"+account, func(ctx context.Context) error {
		return r.transfer(ctx, account)
	})
	return err == nil, err
}

// presentError gives a refusal its code. It is for SetErrorPresenter of the server.
func presentError(ctx context.Context, err error) *gqlerror.Error {
	answer := graphql.DefaultErrorPresenter(ctx, err)
	if refusal, ok := core.RefusalOf(err); ok {
		answer.Message = refusal.Detail
		answer.Extensions = map[string]any{"code": refusal.Code, "retryAfter": refusal.RetryAfter.Seconds()}
	}
	return answer
}
