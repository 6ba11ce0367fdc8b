package adaptertest

import (
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode) // else it prints each route
	goleak.VerifyTestMain(m)
}
