// Package common declares the free names of all snippets.
package common

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

//nolint:unused // snippets use them
var (
	ctx     context.Context
	rdb     *redis.Client
	locks   *core.Locker
	logger  *slog.Logger
	db      *sql.DB
	secret  []byte
	err     error
	account string
	amount  int
	work    func(context.Context) error
)
