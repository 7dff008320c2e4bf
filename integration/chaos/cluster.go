package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/millrace-io/millrace/integration/cluster"
)

// serve is the process with the embedded cluster.
func serve(ctx context.Context, f *flag.FlagSet, args []string) error {
	listen, dir := f.String("listen", "", ""), f.String("data-dir", "", "")
	k := killFlags(f)
	f.Parse(args)
	dies, opts := dieAfter, []cluster.Option{cluster.Listen(*listen), cluster.DataDir(*dir), cluster.Topic(lines, partitions), cluster.Topic(counts, partitions)}
	if k.markers > 0 {
		opts = append(opts, cluster.SyncWrites()) // so that there is a moment between two markers, long enough to be met
		dies = func(k kill) {
			watching := make(chan struct{})
			go logEnds(*dir).dieAt(k.markers, watching)
			<-watching
		}
	}
	c, err := cluster.Start(append(opts, cluster.Logger(childLogger(*k, dies)))...)
	if err != nil {
		return err
	}
	fmt.Fprintf(toParent(), "%s\t%s\n", serving, cutBefore(c.Recovery()))
	<-ctx.Done()
	return c.Close()
}

// serving is told to the parent when the cluster serves, with what the death before has cut.
const serving = "serving"

func cutBefore(r cluster.Recovery) (class string) {
	if r.Clean || !r.Existing {
		return ""
	}
	class = elsewhere
	for _, txn := range r.Transactions {
		switch {
		case txn.Half:
			class = inMarkers
		case class != inMarkers:
			class = inTransaction
		}
	}
	return class
}

// logFiles are the logs of a cluster, each read from where it ended.
type logFiles []*logFile

type logFile struct {
	*os.File
	end int64
}

// logEnds opens the last segment of each log.
func logEnds(dir string) (logs logFiles) {
	segments, _ := filepath.Glob(filepath.Join(dir, "partitions", "*", "*.dat")) // of one directory in ascending order; the pattern is right
	for _, name := range segments {
		file, err := os.Open(name)
		if err != nil {
			continue // it has just gone
		}
		end, err := file.Seek(0, io.SeekEnd)
		if err == nil {
			logs = append(logs, &logFile{file, end})
		}
	}
	return logs
}

// dieAt ends the process when so many markers of transactions have been written. It closes watching when it begins.
func (logs logFiles) dieAt(markers int, watching chan<- struct{}) {
	runtime.LockOSThread()
	close(watching)
	for {
		for _, l := range logs {
			for l.next() {
				if markers--; markers == 0 {
					die()
				}
			}
		}
	}
}

// next reads up to the next marker, if there is one.
func (l *logFile) next() bool {
	var header [23]byte
	for {
		if _, err := l.ReadAt(header[:], l.end); err != nil {
			return false
		}
		l.end += 12 + int64(binary.BigEndian.Uint32(header[8:]))
		if header[22]&(1<<5) != 0 { // a control batch
			return true
		}
	}
}

// tear leaves half a batch at the end of a log, as a kill within a write does: a copy of the first half of its first one.
func tear(dir string) error {
	for _, l := range logEnds(dir) {
		if l.end < 1 {
			continue
		}
		begin := make([]byte, min(l.end, 90))
		if _, err := l.ReadAt(begin, 0); err != nil {
			return err
		}
		batch := int(12 + binary.BigEndian.Uint32(begin[8:]))
		f, err := os.OpenFile(l.Name(), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(begin[:min(len(begin), batch/2)])
		return errors.Join(err, f.Close())
	}
	return errors.New("no log has anything in it")
}
