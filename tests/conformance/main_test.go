package conformance

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode) // else it prints each route
	runMoreAtOnce()
	suite.Main(m)
}

// runMoreAtOnce makes more cases run at the same time than there are processors,
// unless the command line says how many: those that take long do nothing but
// wait until a lease or a record has ended.
func runMoreAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}
