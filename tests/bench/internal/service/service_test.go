package service

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestServeAndClose(t *testing.T) {
	s, err := Serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{}
	get := func() (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Close = true
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	if body, err := get(); err != nil || body != "hello" {
		t.Errorf("%q, %v", body, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := get(); err == nil {
		t.Error("it still answers")
	}
}

func TestEachMergesTimes(t *testing.T) {
	times, err := Each(3, func(client int, times *measure.Histogram) error {
		times.Record(time.Duration(client))
		return nil
	})
	if err != nil || times.Count != 3 || times.Longest != 2 {
		t.Errorf("%+v, %v", times, err)
	}
	broken := errors.New("broken")
	if _, err := Each(3, func(client int, _ *measure.Histogram) error {
		if client == 1 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}
