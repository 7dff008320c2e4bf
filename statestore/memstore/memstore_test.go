package memstore_test

import (
	"errors"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
	"github.com/millrace-io/millrace/statestore/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Disk { return disk{new(memstore.Disk)} })
}

type disk struct{ *memstore.Disk }

func (d disk) Open(t testing.TB) statestore.Engine {
	t.Helper()
	s, err := d.Disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (d disk) Crash(testing.TB) storetest.Disk { return disk{d.Disk.Crash()} }

func TestSecondOpenIsAnError(t *testing.T) {
	d := new(memstore.Disk)
	first, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	var locked *statestore.StoreError
	if _, err := d.Open(); !errors.As(err, &locked) {
		t.Errorf("second open: %v, want a StoreError", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(); err != nil {
		t.Errorf("open after close: %v", err)
	}
}
