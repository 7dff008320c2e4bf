package streamstest

import (
	"fmt"
	"strings"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams"
)

// View returns the view of a table that streams.App's View gives: its committed rows.
func (d *Driver) View[K, V any](ref streams.TableRef[K, V]) (*streams.View[K, V], error) {
	state, err := d.state(ref.Store(), statestore.KeyValue)
	if err != nil {
		return nil, err
	}
	return streams.ViewOfState(ref, state), nil
}

// ViewWindows returns the view of a windowed table that streams.App's ViewWindows gives.
func (d *Driver) ViewWindows[K, V any](ref streams.WindowRef[K, V]) (*streams.WindowView[K, V], error) {
	state, err := d.state(ref.Store(), statestore.Window)
	if err != nil {
		return nil, err
	}
	return streams.ViewWindowsOfState(ref, state), nil
}

// state finds the state that holds a store.
func (d *Driver) state(name string, kind statestore.Kind) (*statestore.State, error) {
	for _, u := range d.units {
		for _, store := range u.stores {
			if store.Name == name && store.Kind == kind {
				return u.state, nil
			}
		}
	}
	return nil, fmt.Errorf("store %q: %w: its stores are %s", name, streams.ErrUnknownStore, strings.Join(d.StoreNames(), ", "))
}
