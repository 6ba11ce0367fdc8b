// Package gin declares the free names of snippets for Gin.
package gin

import "github.com/gin-gonic/gin"

//nolint:unused // snippets use them
var (
	r                   *gin.Engine
	c                   *gin.Context
	pay, transfer, auth gin.HandlerFunc
)
