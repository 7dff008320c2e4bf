package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

// runVersion prints what the Go toolchain wrote into the binary.
func runVersion(_ context.Context, t *terminal, args []string) error {
	flags := t.flags("", "Prints the module version, the revision and the Go version.", formText, formJSON)
	if err := t.parse(flags, args); err != nil {
		return err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("the binary was built without module support")
	}
	revision := "unknown revision"
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			revision = setting.Value
		}
	}
	if t.form == formJSON {
		return t.json(map[string]string{"version": info.Main.Version, "revision": revision, "go": info.GoVersion})
	}
	_, err := fmt.Fprintf(t.out, "millrace %s (%s) %s\n", info.Main.Version, revision, info.GoVersion)
	return err
}
