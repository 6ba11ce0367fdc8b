package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// bodyOf returns the body of an answer: the argument itself, the file after @, or the standard input for -.
func (c *call) bodyOf(ctx context.Context, argument string) ([]byte, error) {
	file, isFile := strings.CutPrefix(argument, "@")
	switch {
	case argument == "-":
		return typed(ctx, func() ([]byte, error) { return io.ReadAll(c.in) })
	case isFile:
		body, err := os.ReadFile(file) //nolint:gosec // the user names the file
		if err != nil {
			return nil, misuse("the BODY: %v", err)
		}
		return body, nil
	default:
		return []byte(argument), nil
	}
}

// answered returns the resolution with an answer. It refuses a body that is not of its type, because copies get the
// answer for the whole retention.
func answered(status int, contentType string, body []byte) (core.Resolution, error) {
	if isJSON(contentType) && !json.Valid(body) && (status != http.StatusNoContent || len(body) > 0) {
		return core.Resolution{}, misuse("the BODY is no JSON: quote it for the shell, as in '{\"id\":7}', or set --content-type")
	}
	answer, err := nethttplock.NewAnswer(status, http.Header{"Content-Type": {contentType}}, body)
	if err != nil {
		return core.Resolution{}, misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: "))
	}
	return core.Answered(answer), nil
}

// isJSON reports whether a body of the type is JSON.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return media == "application/json" || strings.HasSuffix(media, "+json")
}
