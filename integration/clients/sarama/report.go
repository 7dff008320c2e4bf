package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// limit bounds every wait.
const limit = 2 * time.Minute

// A named case of the client matrix.
type namedCase struct {
	name string
	body func() error
}

// play runs cases and prints one JSON line for each.
func play(cases []namedCase) error {
	for _, c := range cases {
		line := map[string]any{"case": c.name}
		if err := c.body(); err != nil {
			fmt.Fprintln(os.Stderr, c.name, err)
			line["error"] = err.Error()
		} else {
			line["ok"] = true
		}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			return err
		}
	}
	return nil
}
