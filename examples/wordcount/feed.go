package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// feed writes the lines of files to the topic lines.
type feed struct {
	client *kgo.Client
	say    func(format string, args ...any)

	lines, words atomic.Int64 // produced so far; read by the progress line
	failed       atomic.Pointer[error]
}

// errUnread is returned when a file could not be read; which and why has been said.
var errUnread = errors.New("not every file could be read")

// run feeds one file after another. A file that cannot be read is named and left out.
func (f *feed) run(ctx context.Context, files []string) error {
	unread := false
	for _, name := range files {
		report, err := f.file(ctx, name)
		if werr := f.produceError(); werr != nil {
			return werr
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			unread = true
			f.say("%s is left out: %v", name, err)
		case report.String() != "":
			f.say("%s %s", name, report)
		}
	}
	if err := f.client.Flush(ctx); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	if err := f.produceError(); err != nil {
		return err
	}
	if unread {
		return errUnread
	}
	return nil
}

func (f *feed) file(ctx context.Context, name string) (textReport, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return textReport{}, errors.New("there is no such file")
	case err != nil:
		return textReport{}, err
	case info.IsDir():
		return textReport{}, errors.New("it is a directory; name the files in it")
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return textReport{}, errors.New("it is neither a file nor a pipe")
	}
	file, err := os.Open(name)
	if err != nil {
		return textReport{}, err
	}
	defer file.Close()
	return readText(file, func(line []byte) error {
		if len(line) == 0 {
			return nil
		}
		f.client.Produce(ctx, &kgo.Record{Topic: linesTopic, Value: append([]byte(nil), line...)}, f.produced)
		f.lines.Add(1)
		f.words.Add(int64(len(words(string(line)))))
		return f.produceError()
	})
}

func (f *feed) produced(_ *kgo.Record, err error) {
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
	}
}

func (f *feed) produceError() error {
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("write lines: %w", *err)
	}
	return nil
}

// ownFiles lists the *.md and *.go files of the module around the working directory, or below the working
// directory itself.
func ownFiles() ([]string, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && entry.Name()[0] == '.':
			return filepath.SkipDir
		case entry.Type().IsRegular() && (filepath.Ext(name) == ".md" || filepath.Ext(name) == ".go"):
			files = append(files, name)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no *.md or *.go file below %s: name the files to count", root)
	}
	return files, err
}

func moduleRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := wd; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return wd, nil
		}
	}
}
