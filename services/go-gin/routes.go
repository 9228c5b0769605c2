package main

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

func newHandler() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(gin.Recovery())
	// Gin would redirect /hello/ to /hello, and the contract wants 404.
	engine.RedirectTrailingSlash = false
	if err := engine.SetTrustedProxies(nil); err != nil {
		return nil, err
	}
	engine.GET("/hello/"+mode, newCache().hello)

	engine.GET("/", root)
	engine.GET("/no-read", ok)
	engine.GET("/hello", helloWorld)
	engine.GET("/file", newFile().serve)
	engine.POST("/load", load)

	engine.GET("/data", data)
	engine.GET("/concat", concat)
	engine.GET("/fibonacci", fibonacci)

	engine.GET("/healthz", ok)
	engine.GET("/readyz", ok)
	engine.NoRoute(notFound)
	return engine.Handler(), nil
}

func ok(c *gin.Context) {
	empty(c, http.StatusOK)
}

func notFound(c *gin.Context) {
	empty(c, http.StatusNotFound)
}

// empty writes the header itself, because Gin adds a body to a 404 without one.
func empty(c *gin.Context, status int) {
	c.Status(status)
	c.Writer.WriteHeaderNow()
}
