package main

import (
	"io"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	holdIfAsked() // the tests start themselves as the holder that is killed
	gin.SetMode(gin.TestMode)
	gin.DefaultErrorWriter = io.Discard // where its recovery shows the panics
	suite.Main(m)
}
