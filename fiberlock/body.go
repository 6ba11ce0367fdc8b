package fiberlock

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"slices"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// readBody reads the body of a request, as it was sent, and leaves it for the handler.
func readBody(c fiber.Ctx, limit int64) ([]byte, error) {
	if c.Request().IsBodyStream() {
		return readStream(c, limit)
	}
	if int64(c.Request().Header.ContentLength()) > limit { // before files are encoded
		return nil, adapter.BodyTooLarge(limit)
	}
	body, err := bytesOf(c)
	if int64(len(body)) > limit {
		return nil, adapter.BodyTooLarge(limit)
	}
	return body, err
}

// bytesOf returns a body that Fiber has read. Of a form with files, Fiber keeps no bytes, and
// would encode it in another order for each copy.
func bytesOf(c fiber.Ctx) ([]byte, error) {
	request := c.Request()
	boundary := string(request.Header.MultipartFormBoundary())
	if boundary != "" && len(request.Header.ContentEncoding()) == 0 { // otherwise Fiber would decompress it
		if form, err := request.MultipartForm(); err == nil {
			return encode(form, boundary)
		}
	}
	return request.Body(), nil
}

// readStream reads a body of which Fiber has read only the beginning: see fiber.Config.StreamRequestBody.
func readStream(c fiber.Ctx, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(c.Request().BodyStream(), limit+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%w: an incomplete body", core.ErrInvalidKey)
	case int64(len(body)) > limit:
		err = adapter.BodyTooLarge(limit)
	default:
		c.Request().SetBodyStream(bytes.NewReader(body), len(body))
		return body, nil
	}
	c.Response().SetConnectionClose() // the rest of the body would be taken for the next request
	return nil, err
}

// encode encodes a form in the order of its names.
func encode(form *multipart.Form, boundary string) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, fmt.Errorf("%w: a malformed boundary", core.ErrInvalidKey)
	}
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		for _, value := range form.Value[name] {
			_ = w.WriteField(name, value) // a bytes.Buffer has no errors
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			if err := encodeFile(w, file); err != nil {
				return nil, err
			}
		}
	}
	_ = w.Close()
	return body.Bytes(), nil
}

// encodeFile encodes an uploaded file.
func encodeFile(w *multipart.Writer, file *multipart.FileHeader) error {
	content, err := file.Open()
	if err != nil {
		return fmt.Errorf("an uploaded file: %w", err)
	}
	defer func() { _ = content.Close() }()
	part, err := w.CreatePart(file.Header)
	if err == nil {
		_, err = io.Copy(part, content)
	}
	return err
}
