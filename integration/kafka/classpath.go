package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed pom.xml
var pom []byte

// ErrNoJava is returned when there is no JDK, ErrNoMaven when the jars still have to be resolved and there
// is no Maven. Both come wrapped in an error that says what to install.
var (
	ErrNoJava  = errors.New("no JDK 17 or newer found")
	ErrNoMaven = errors.New("no Maven found")
)

// Classpath returns the jars of broker, tools and Kafka Streams as a Java class path. The first call in a
// run directory resolves them from Maven Central, which takes up to a few minutes; later calls read a file.
func Classpath(ctx context.Context, dir string) (string, error) {
	sum := sha256.Sum256(pom)
	name := "classpath-" + hex.EncodeToString(sum[:6])
	list := filepath.Join(dir, name+".txt")
	if cp, ok := readClasspath(list); ok {
		return cp, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("kafka: %w: install Maven (Debian: apt-get install maven) so that the jars of "+
			"Apache Kafka can be resolved, or put %s there from another machine", ErrNoMaven, list)
	}
	// A directory of its own and a rename: a resolution that was cut short or runs twice leaves no half list.
	tmp, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return "", fmt.Errorf("kafka: resolve jars: %w", err)
	}
	defer os.RemoveAll(tmp)
	pomFile, out := filepath.Join(tmp, "pom.xml"), filepath.Join(tmp, "classpath.txt")
	if err := os.WriteFile(pomFile, pom, 0o644); err != nil {
		return "", fmt.Errorf("kafka: resolve jars: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-Dstyle.color=never", "-f", pomFile,
		"dependency:build-classpath", "-Dmdep.outputFile="+out, "-Dmdep.regenerateFile=true")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("kafka: mvn could not resolve the jars of Apache Kafka: %w\n%s", err, tail(text, 20))
	}
	if err := os.Rename(out, list); err != nil {
		return "", fmt.Errorf("kafka: resolve jars: %w", err)
	}
	cp, ok := readClasspath(list)
	if !ok {
		return "", fmt.Errorf("kafka: mvn wrote %s, but jars named in it are missing", list)
	}
	return cp, nil
}

// readClasspath accepts a list only while every jar in it exists: a cleaned Maven repository must lead to a
// new resolution, not to a NoClassDefFoundError.
func readClasspath(list string) (string, bool) {
	text, err := os.ReadFile(list)
	if err != nil {
		return "", false
	}
	cp := strings.TrimSpace(string(text))
	if cp == "" {
		return "", false
	}
	for _, jar := range filepath.SplitList(cp) {
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
	}
	return cp, true
}

// lookJDK finds a program of the JDK: in $JAVA_HOME/bin, then on PATH.
func lookJDK(program string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", program)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("kafka: %w: %s is neither in $JAVA_HOME/bin nor on PATH; install a JDK "+
			"(Debian: apt-get install openjdk-17-jdk-headless)", ErrNoJava, program)
	}
	return path, nil
}

// Java is the path of the Java launcher. The error wraps ErrNoJava.
func Java() (string, error) { return lookJDK("java") }

// Javac is the path of the Java compiler. The error wraps ErrNoJava.
func Javac() (string, error) { return lookJDK("javac") }

// Keytool is the path of the JDK's tool for key stores. The error wraps ErrNoJava.
func Keytool() (string, error) { return lookJDK("keytool") }

// tail returns the last n lines of text.
func tail(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
