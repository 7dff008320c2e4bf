package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/integration/cluster/admin"
)

func TestDevServesItsAdminSide(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dev := startDev(t, "-admin", address)
	client, err := admin.NewClient("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Expect(t.Context(), "g", admin.Expected{InstanceIDs: []string{"a"}}); err != nil {
		t.Error(err)
	}
	if said := dev.end(t); !strings.Contains(said, "admin: http://"+address+"/admin/v1/groups") {
		t.Errorf("dev did not say where its admin side is but\n%s", said)
	}
	if _, err := client.Settings(t.Context(), "g"); err == nil {
		t.Error("the admin side goes on after dev has ended")
	}
}

func TestDevNamesABusyAdminAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var out, said bytes.Buffer
	if got := run(t.Context(), stdio{nil, &out, &said}, []string{"dev", "-listen", "127.0.0.1:0", "-admin", taken.Addr().String()}); got != statusFailed {
		t.Errorf("status %d", got)
	}
	if !strings.Contains(said.String(), "-admin: cannot listen on "+taken.Addr().String()) {
		t.Errorf("dev said %s", said.String())
	}
}
