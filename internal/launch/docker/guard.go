package docker

import (
	"context"
	"encoding/json"
	"fmt"

	"prony/internal/launch/guard"
)

// watch is what a guard must know.
type watch struct {
	Socket string `json:"socket"`
	Lab    lab    `json:"lab"`
	Dir    string `json:"dir"`
}

var post = guard.Post{Env: "PRONY_DOCKER_GUARD", Clear: clearUp}

// Guard must be called first in main of every program that uses this package, and in TestMain:
// guard.Post.Stand of what removes the containers and networks that a lab has left.
func Guard() { post.Stand() }

// clearUp removes what the lab has left and notes what could not be removed.
func clearUp(orders []byte) error {
	var w watch
	if err := json.Unmarshal(orders, &w); err != nil {
		return fmt.Errorf("read watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	engine, err := connect(ctx, w.Socket)
	var removed []string
	if err == nil {
		removed, err = sweep(ctx, engine, w.Lab.owns)
		engine.Close()
	}
	return guard.Note(w.Dir, "docker-guard.log", w.Lab.ID, removed, err)
}
