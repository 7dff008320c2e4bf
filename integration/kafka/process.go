package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// record is what Start writes down about its process, so that another process can find it.
type record struct {
	PID            int    `json:"pid"`
	Started        string `json:"started"` // when the kernel started it: a reused pid differs here
	Port           int    `json:"port"`
	SSLPort        int    `json:"ssl_port,omitempty"` // of a secured broker
	ControllerPort int    `json:"controller_port"`
}

func readRecord(file string) (record, error) {
	var r record
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNotRunning
	}
	if err != nil {
		return r, fmt.Errorf("kafka: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("kafka: %s is damaged (remove it): %w", file, err)
	}
	return r, nil
}

func (r record) write(file string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// alive says whether the recorded process, and not another with its number, runs.
func (r record) alive() bool {
	if r.PID <= 0 || syscall.Kill(r.PID, 0) != nil {
		return false
	}
	started, state := startOf(r.PID)
	return started == r.Started && !(state == "Z" && lastThread(r.PID))
}

// lastThread says whether only the first thread of a process is left. A killed JVM shows as a zombie while
// its other threads still hold the sockets; it is gone when they are, even if nobody reaps it.
func lastThread(pid int) bool {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	return err != nil || len(threads) <= 1
}

// startOf reads the start time of a process in clock ticks since boot, and its state letter. Both are empty
// where there is no /proc: there the number alone has to do.
func startOf(pid int) (started, state string) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", ""
	}
	// the second field is the name in parentheses and may hold anything; fields are counted after it
	_, rest, ok := bytes.Cut(text[bytes.LastIndexByte(text, ')'):], []byte(" "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 {
		return "", ""
	}
	return fields[19], fields[0]
}
