// Command kafka starts and stops the real Apache Kafka broker of the integration tests and benchmarks.
//
//	go run ./integration/kafka/cmd/kafka start [-name N] [-port P] [-secure [-ssl-port P]] [-bench] [-cpus LIST] [-fresh] [property=value ...]
//	go run ./integration/kafka/cmd/kafka stop|kill|pause|resume|address [-name N]
//	go run ./integration/kafka/cmd/kafka tool CLASS [argument ...]
//
// start returns when the broker is ready and prints its address; the broker goes on in the background. With -secure it also prints
// the address for clients with a certificate, and the directory with certificates and client properties.
// It needs a JDK 17 or newer and, for the first start, Maven. Data and jars list are in .kafka, or in
// $MILLRACE_KAFKA_DIR. Exit status: 0 done, 1 failed, 2 wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/millrace-io/millrace/integration/kafka"
)

const usage = "usage: kafka start [-name N] [-port P] [-secure [-ssl-port P]] [-bench] [-cpus LIST] [-fresh] [property=value ...]\n" +
	"       kafka stop|kill|pause|resume|address [-name N]\n" +
	"       kafka tool CLASS [argument ...]"

var errUsage = errors.New(usage)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	verb, args := args[0], args[1:]
	if verb == "tool" {
		return tool(ctx, args)
	}
	var cfg kafka.Config
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&cfg.Name, "name", "single", "name of the broker")
	if verb == "start" {
		flags.IntVar(&cfg.Port, "port", 9092, "port for clients; 0 chooses a free one")
		flags.BoolVar(&cfg.Secure, "secure", false, "SASL_SSL with SCRAM-SHA-512 and PLAIN at -port, SSL with client certificate at -ssl-port; ACLs decide")
		flags.IntVar(&cfg.SSLPort, "ssl-port", 0, "port for clients with a certificate; 0 chooses a free one")
		flags.BoolVar(&cfg.Bench, "bench", false, "JVM flags for benchmarks instead of small ones")
		flags.StringVar(&cfg.CPUs, "cpus", "", "pin the broker to these processors, for example 1")
		flags.BoolVar(&cfg.Fresh, "fresh", false, "remove the data of an earlier run first")
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w (%v)", errUsage, err)
	}
	if verb == "start" {
		return start(ctx, cfg, flags.Args())
	}
	return signalBroker(ctx, verb, cfg.Name)
}

func start(ctx context.Context, cfg kafka.Config, properties []string) error {
	cfg.Properties = map[string]string{}
	for _, p := range properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("%w (%q is not property=value)", errUsage, p)
		}
		cfg.Properties[name] = value
	}
	b, err := kafka.Start(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Println(b.Addr())
	if cfg.Secure {
		fmt.Println(b.SSLAddr())
		fmt.Println(filepath.Dir(b.File(kafka.CAFile)))
	}
	return nil
}

func signalBroker(ctx context.Context, verb, name string) error {
	b, err := kafka.Find("", name)
	if errors.Is(err, kafka.ErrNotRunning) && (verb == "stop" || verb == "kill") {
		return nil // what was asked for is the case
	}
	if err != nil {
		return err
	}
	switch verb {
	case "stop":
		return b.Stop(ctx)
	case "kill":
		return b.Kill()
	case "pause":
		b.Pause()
	case "resume":
		b.Resume()
	case "address":
		fmt.Println(b.Addr())
	default:
		return fmt.Errorf("%w (no verb %q)", errUsage, verb)
	}
	return nil
}

func tool(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	dir, err := kafka.RunDir()
	if err != nil {
		return err
	}
	cmd, err := kafka.Tool(ctx, dir, args[0], args[1:]...)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
