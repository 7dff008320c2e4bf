package streamstest

import (
	"fmt"
	"strings"

	"github.com/millrace-io/millrace/statestore"
)

// Store returns the committed content of a state store as bytes. Close the view after use.
func (d *Driver) Store(name string) (*statestore.View, error) {
	for _, u := range d.units {
		for _, store := range u.stores {
			if store.Name == name {
				return u.state.Reader()
			}
		}
	}
	return nil, fmt.Errorf("no store %q in the topology: there are %s", name, strings.Join(d.StoreNames(), ", "))
}
