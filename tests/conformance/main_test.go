package conformance

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode) // otherwise it prints each route
	suite.Parallel(32)
	suite.Main(m)
}
