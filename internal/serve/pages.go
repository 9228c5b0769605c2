package serve

import (
	"net/http"
	"path"

	"prony/internal/shelf"
	"prony/internal/web"
)

// index is the app.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	return page(w, "index.html")
}

// asset is a file of the app. They are in the program, not on disk.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if kinds[path.Ext(name)] == "" || !shelf.Identifier(name) {
		return refuse(http.StatusNotFound, "there is no page %.128q", name)
	}
	return page(w, name)
}

// kinds are what the app is made of.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

func page(w http.ResponseWriter, name string) error {
	b, err := web.Page(name)
	if err != nil {
		return refuse(http.StatusNotFound, "there is no page %.128q", name)
	}
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	_, err = w.Write(b)
	return ignore(err)
}
