package main

import (
	"io"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	holdIfAsked() // the tests start themselves as the holder that is killed
	gin.SetMode(gin.TestMode)
	gin.DefaultErrorWriter = io.Discard // where its recovery shows the panics
	goleak.VerifyTestMain(m)
}
