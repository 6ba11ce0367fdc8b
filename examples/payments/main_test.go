package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	holdIfAsked() // the tests start themselves as the holder that is killed
	goleak.VerifyTestMain(m)
}
