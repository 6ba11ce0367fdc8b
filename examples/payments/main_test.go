package main

import (
	"io"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	runHolder() // the crash scenario starts the test binary as the holder
	gin.SetMode(gin.TestMode)
	gin.DefaultErrorWriter = io.Discard // Gin's recovery prints panics there
	suite.Main(m)
}
