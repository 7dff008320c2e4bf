package kafka

import (
	"context"
	"os/exec"
	"strings"
)

// Tool prepares a run of one of Kafka's command-line classes with the class path of this package, for example
// Tool(ctx, dir, "TopicCommand", "--list", …). A name without a dot is taken from org.apache.kafka.tools.
func Tool(ctx context.Context, dir, class string, args ...string) (*exec.Cmd, error) {
	java, err := Java()
	if err != nil {
		return nil, err
	}
	cp, err := Classpath(ctx, dir)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(class, ".") {
		class = "org.apache.kafka.tools." + class
	}
	return exec.CommandContext(ctx, java, append([]string{"-Xmx512m", "-cp", cp, class}, args...)...), nil
}
