package core_test

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	suite.Parallel(32)
	suite.Main(m)
}
