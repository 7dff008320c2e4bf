package clients

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/kafka"
)

// installTimeout bounds one installation, downloads included.
const installTimeout = 8 * time.Minute

// cacheDir holds what the manifests name, once it is installed.
const cacheDir = "../../.cache/clients"

// runtime finds a program that a client needs.
func runtime(t *testing.T, program, install string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not on PATH: this client needs it; install it (%s)", program, install)
	}
	return path
}

// installing lets one test at a time install, so that several that need the same wait for the first.
var installing sync.Mutex

// installed returns a directory that fill has filled according to some files, now or in an earlier run. It takes its
// name when it is complete, so that a run that was cut short leaves nothing that looks installed.
func installed(t *testing.T, name string, files []string, extra string, fill func(ctx context.Context, dir string) error) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	sum := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	sum.Write([]byte(extra))
	cache, err := filepath.Abs(cacheDir)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, name+"-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(cache, name+"-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	if err := fill(ctx, tmp); err != nil {
		t.Fatalf("install %s: %v", name, err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs one step of an installation.
func run(cmd *exec.Cmd) error {
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}

// java compiles the Java programs against the jars that integration/kafka resolves, and runs one of them.
func java(class string) func(t *testing.T) starter {
	return func(t *testing.T) starter {
		sources, err := filepath.Glob("java/*.java")
		if err != nil {
			t.Fatal(err)
		}
		return compiled(t, javaJars(t), class, sources)
	}
}

// javaOf does the same with the clients of an older release in place of the broker's own, for the program that is
// content with them.
func javaOf(major string) func(t *testing.T) starter {
	return func(t *testing.T) starter {
		jars := javaJars(t)
		version := oldJava(major).version()
		mvn := runtime(t, "mvn", "Debian: apt-get install maven")
		dir := installed(t, "kafka-clients", nil, version, func(ctx context.Context, dir string) error {
			return run(exec.CommandContext(ctx, mvn, "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
				"-Dartifact=org.apache.kafka:kafka-clients:"+version, "-DoutputDirectory="+dir))
		})
		var list []string
		for _, jar := range filepath.SplitList(jars.classpath) {
			if strings.HasPrefix(filepath.Base(jar), "kafka-clients-") {
				jar = filepath.Join(dir, "kafka-clients-"+version+".jar")
			}
			list = append(list, jar)
		}
		jars.classpath = strings.Join(list, string(filepath.ListSeparator))
		return compiled(t, jars, "Client", []string{"java/Cases.java", "java/Client.java"})
	}
}

// compiled compiles sources and runs a class.
func compiled(t *testing.T, jars jvm, class string, sources []string) starter {
	t.Helper()
	javac, err := kafka.Javac()
	if err != nil {
		t.Fatal(err)
	}
	classes := installed(t, "java", sources, jars.classpath, func(ctx context.Context, dir string) error {
		return run(exec.CommandContext(ctx, javac, append([]string{"-Xlint:all", "-d", dir, "-cp", jars.classpath}, sources...)...))
	})
	return func(ctx context.Context, at endpoint, dir string) *exec.Cmd {
		cp := classes + string(filepath.ListSeparator) + jars.classpath
		return exec.CommandContext(ctx, jars.java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", jars.logging, "-cp", cp, class, at.addr, dir, at.admin)
	}
}

// jvm is what it takes to run a class of Kafka's.
type jvm struct{ java, classpath, logging, dir string }

func javaJars(t *testing.T) (j jvm) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	var err error
	if j.dir, err = kafka.RunDir(); err != nil {
		t.Fatal(err)
	}
	if j.java, err = kafka.Java(); err != nil {
		t.Fatal(err)
	}
	if j.classpath, err = kafka.Classpath(ctx, j.dir); err != nil {
		t.Fatal(err)
	}
	if j.logging, err = kafka.LoggingFlag(j.dir); err != nil {
		t.Fatal(err)
	}
	return j
}

func python(program string) func(t *testing.T) starter {
	return func(t *testing.T) starter {
		interpreter := runtime(t, "python3", "Debian: apt-get install python3 python3-pip")
		// The packages have parts that are built for one version of Python.
		version, err := exec.CommandContext(t.Context(), interpreter, "--version").Output()
		if err != nil {
			t.Fatalf("%s --version: %v", interpreter, err)
		}
		packages := installed(t, "python", []string{"python/requirements.txt"}, string(version), func(ctx context.Context, dir string) error {
			return run(exec.CommandContext(ctx, interpreter, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
				"--target", dir, "-r", "python/requirements.txt"))
		})
		return func(ctx context.Context, at endpoint, _ string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, interpreter, filepath.Join("python", program), at.addr)
			cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
			return cmd
		}
	}
}

func node(t *testing.T) starter {
	interpreter := runtime(t, "node", "Debian: apt-get install nodejs npm")
	npm := runtime(t, "npm", "Debian: apt-get install npm")
	manifests := []string{"kafkajs/package.json", "kafkajs/package-lock.json"}
	modules := installed(t, "kafkajs", manifests, "", func(ctx context.Context, dir string) error {
		if err := os.CopyFS(dir, os.DirFS("kafkajs")); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		return run(cmd)
	})
	return func(ctx context.Context, at endpoint, _ string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, interpreter, "kafkajs/client.js", at.addr)
		cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(modules, "node_modules"))
		return cmd
	}
}

// goProgram builds the program of a directory, in whose module it may be the only one.
func goProgram(dir string, args ...string) func(t *testing.T) starter {
	return func(t *testing.T) starter {
		out := filepath.Join(t.TempDir(), dir)
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, ".")
		cmd.Dir = dir
		if err := run(cmd); err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, at endpoint, _ string) *exec.Cmd {
			return exec.CommandContext(ctx, out, append([]string{at.addr}, args...)...)
		}
	}
}
