package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

// runVersion prints what the Go toolchain wrote into the binary.
func runVersion(_ context.Context, s stdio, args []string) error {
	if err := parse(newFlags(s, "version", "", "Prints the module version, the revision and the Go version."), args); err != nil {
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
	fmt.Fprintf(s.out, "millrace %s (%s) %s\n", info.Main.Version, revision, info.GoVersion)
	return nil
}
