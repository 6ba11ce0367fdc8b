package frameworks

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// executable returns what gqlgen generates for the schema, for one field in an operation. The runtime of gqlgen parses,
// validates and answers.
func executable(r *mutationResolver) graphql.ExecutableSchema {
	schema := gqlparser.MustLoadSchema(&ast.Source{
		Input: "type Query { ready: Boolean! } type Mutation { transfer(account: ID!): Boolean! }",
	})
	exec := func(ctx context.Context) *graphql.Response {
		operation := graphql.GetOperationContext(ctx)
		field := graphql.CollectFields(operation, operation.Operation.SelectionSet, []string{"Mutation"})[0]
		args := field.ArgumentMap(operation.Variables)
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Mutation", Field: field, Args: args})
		done, err := operation.ResolverMiddleware(ctx, func(ctx context.Context) (any, error) {
			return r.Transfer(ctx, args["account"].(string))
		})
		if err != nil {
			graphql.AddError(ctx, err)
			return &graphql.Response{Data: []byte("null")}
		}
		return &graphql.Response{Data: fmt.Appendf(nil, `{%q:%t}`, field.Alias, done)}
	}
	return &graphql.ExecutableSchemaMock{
		SchemaFunc:     func() *ast.Schema { return schema },
		ComplexityFunc: func(context.Context, string, string, int, map[string]any) (int, bool) { return 0, false },
		ExecFunc: func(ctx context.Context) graphql.ResponseHandler {
			return graphql.OneShot(exec(ctx))
		},
	}
}

func TestGqlgen(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).With(core.WithWait(0))
	toGraphQL := route{path: "/query", body: `{"query": "mutation { transfer(account: \"ACCOUNT\") }"}`}
	toGraphQL.checkExclusion(t, http.StatusOK, func(transfer func(string)) http.Handler {
		server := handler.New(executable(&mutationResolver{locks: locks, transfer: func(_ context.Context, account string) error {
			transfer(account)
			return nil
		}}))
		server.AddTransport(transport.POST{})
		server.SetErrorPresenter(presentError)
		return server
	})
}
