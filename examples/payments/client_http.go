package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// An httpClient is a client of an HTTP service.
type httpClient struct {
	url  string
	http *http.Client
}

// newHTTPClient returns a client of the service at a URL.
func newHTTPClient(url string) *httpClient {
	return &httpClient{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

func (c *httpClient) close() { c.http.CloseIdleConnections() }

func (c *httpClient) transfer(ctx context.Context, from, to string, cents int64) (answer, error) {
	return c.post(ctx, from, "/accounts/"+url.PathEscape(from)+"/transfer", map[string]any{"to": to, "cents": cents})
}

func (c *httpClient) settle(ctx context.Context, from, to string, cents int64) (answer, error) {
	return c.post(ctx, from, "/accounts/"+url.PathEscape(from)+"/settle", map[string]any{"to": to, "cents": cents})
}

func (c *httpClient) order(ctx context.Context, user, item string) (answer, error) {
	return c.post(ctx, user, "/me/orders", map[string]any{"item": item})
}

func (c *httpClient) pay(ctx context.Context, key, from, to string, cents int64) (answer, error) {
	request, err := c.newPost(ctx, from, "/accounts/"+url.PathEscape(from)+"/payments", map[string]any{"to": to, "cents": cents})
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Idempotency-Key", strconv.Quote(key))
	return c.send(request)
}

func (c *httpClient) balance(ctx context.Context, account string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/accounts/"+url.PathEscape(account), http.NoBody)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+account)
	return c.send(request)
}

// post sends a request of a user.
func (c *httpClient) post(ctx context.Context, user, path string, body any) (answer, error) {
	request, err := c.newPost(ctx, user, path, body)
	if err != nil {
		return answer{}, err
	}
	return c.send(request)
}

// newPost returns a request of a user.
func (c *httpClient) newPost(ctx context.Context, user, path string, body any) (*http.Request, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+user)
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// send sends a request, and reads the answer.
func (c *httpClient) send(request *http.Request) (answer, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	return answerOf(response)
}

// answerOf reads an HTTP answer. The answer for a busy lock is a problem document
// (RFC 9457) with the code "busy", or "wait_timeout" after a wait.
func answerOf(response *http.Response) (answer, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("answer cut short: %w", err)
	}
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &problem) // other answers have no code
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return answer{
		Done:       response.StatusCode/100 == 2,
		Busy:       response.StatusCode == http.StatusConflict && (problem.Code == "busy" || problem.Code == "wait_timeout"),
		Unknown:    problem.Code == "outcome_unknown",
		Status:     strconv.Itoa(response.StatusCode),
		RetryAfter: time.Duration(seconds) * time.Second,
		Retry:      httpProtocol.Retry,
		Replayed:   response.Header.Get("Idempotent-Replayed") == "true",
		Content:    response.Status + "\n" + response.Header.Get("Content-Type") + "\n" + string(body),
	}, nil
}
