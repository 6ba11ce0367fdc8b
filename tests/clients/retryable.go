// Package clients runs the settings of docs/clients.md. It is a module of its own, so that reqlock does not need
// go-retryablehttp. README.md says what is proved.
package clients

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// pay sends a payment. Its code is a block of the page.
func pay(ctx context.Context, url, key string, payment []byte) (*http.Response, error) {
	client := retryablehttp.NewClient()
	client.RetryMax, client.RetryWaitMax = 20, 5*time.Second
	client.HTTPClient.Timeout = 10 * time.Second
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler // returns the last answer
	client.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if err != nil || ctx.Err() != nil {
			return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
		}
		invited := answer.StatusCode >= 400 && answer.Header.Get("Retry-After") != ""
		return invited || answer.StatusCode >= 502 && answer.StatusCode <= 504, nil
	}
	client.Backoff = func(shortest, longest time.Duration, try int, answer *http.Response) time.Duration {
		if answer != nil {
			if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
		return retryablehttp.DefaultBackoff(shortest, longest, try, answer)
	}

	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url, payment)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	return client.Do(request)
}
