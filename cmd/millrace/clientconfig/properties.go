package clientconfig

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// Properties are client properties. The zero value has none.
type Properties struct {
	// User and Password, if not empty, take the place of those in sasl.jaas.config.
	User, Password string

	values map[string]property
	used   map[string]bool
}

// property is a value and where it was set, for errors.
type property struct{ value, origin string }

// Read reads a file in the syntax of Java's properties.
func Read(name string) (*Properties, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err // names the file
	}
	// The library takes the line feed of a continued line that ends as on Windows for the end of the value.
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	// Java reads such a file as ISO 8859-1, and knows no ${…}.
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	parsed, err := loader.LoadBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no properties file: %w", name, err) // the library tells the kind of mistake, and no value
	}
	p := &Properties{}
	for _, key := range parsed.Keys() {
		value, _ := parsed.Get(key)
		p.Set(name, key, value)
	}
	return p, nil
}

// Set adds a property or takes the place of one. origin is where it comes from.
func (p *Properties) Set(origin, key, value string) {
	if p.values == nil {
		p.values = map[string]property{}
	}
	p.values[key] = property{value, origin}
}

// Delete removes properties.
func (p *Properties) Delete(keys ...string) {
	for _, key := range keys {
		delete(p.values, key)
	}
}

// get returns the value of a property, "" without one, and remembers that it has an effect. Like Kafka it does not mind spaces
// around it.
func (p *Properties) get(key string) string { return strings.TrimSpace(p.secret(key)) }

// secret is get for a password, whose spaces count.
func (p *Properties) secret(key string) string {
	if p.used == nil {
		p.used = map[string]bool{}
	}
	p.used[key] = true
	return p.values[key].value
}

// has tells whether a property is set, be it to nothing.
func (p *Properties) has(key string) bool {
	_, ok := p.values[key]
	return ok
}

// errorf is an error about a property: where, which and what.
func (p *Properties) errorf(key, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if origin := p.values[key].origin; origin != "" {
		return fmt.Errorf("%s: %s: %w", origin, key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// unused notes the properties without effect. A name without a dot is counted only: it may be the rest of a value whose line
// is not continued as it was meant to be.
func (p *Properties) unused() []string {
	var names []string
	others := 0
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		switch {
		case p.used[key]:
		case strings.Contains(key, "."):
			names = append(names, key)
		default:
			others++
		}
	}
	var notes []string
	if len(names) > 0 {
		notes = append(notes, "these properties are not used: "+strings.Join(names, ", "))
	}
	if others > 0 {
		notes = append(notes, fmt.Sprintf("properties whose names have no dot are not used: %d (does a line before lack its \\ at the end?)", others))
	}
	return notes
}
