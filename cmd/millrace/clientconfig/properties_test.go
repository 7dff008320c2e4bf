package clientconfig

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file writes a properties file.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "client.properties")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, text string) *Properties {
	t.Helper()
	p, err := Read(file(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadKnowsJavasSyntax(t *testing.T) {
	const text = "# comment \\\n! another = one\n\n" +
		"  a.equals = 1 \n" +
		"a.colon:2\n" +
		"a.space 3\n" +
		"a.nothing=\n" +
		"a.bare\n" +
		"a.continued=one \\\n    two \\\n\tthree\n" +
		"a.escapes=tab\\there \\u00e9 back\\\\slash \\= \\: \\#\n" +
		"a.latin=caf\xe9\n" +
		"a.braces=${HOME}/x\n" +
		"a.twice=first\na.twice=second\n" +
		"a\\ key=with space\n" +
		"a.last=end"
	want := map[string]string{
		"a.equals": "1 ", "a.colon": "2", "a.space": "3", "a.nothing": "", "a.bare": "", "a.continued": "one two three",
		"a.escapes": "tab\there é back\\slash = : #", "a.latin": "café", "a.braces": "${HOME}/x", "a.twice": "second",
		"a key": "with space", "a.last": "end",
	}
	for name, text := range map[string]string{"Unix": text, "Windows": strings.ReplaceAll(text, "\n", "\r\n")} {
		t.Run(name, func(t *testing.T) {
			p := read(t, text)
			got := map[string]string{}
			for key, each := range p.values {
				got[key] = each.value
			}
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if got[key] != want[key] {
					t.Errorf("%s is %q, want %q", key, got[key], want[key])
				}
			}
			if len(got) != len(want) {
				t.Errorf("read %q", got)
			}
		})
	}
}

func TestReadNamesTheFile(t *testing.T) {
	if _, err := Read("nowhere.properties"); err == nil || !strings.Contains(err.Error(), "nowhere.properties") {
		t.Errorf("a missing file: %v", err)
	}
	name := file(t, "a.b=\\u00zz-hunter2")
	if _, err := Read(name); err == nil || !strings.Contains(err.Error(), name+" is no properties file") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestNotes(t *testing.T) {
	for text, want := range map[string][]string{
		"security.protocol=PLAINTEXT\nclient.id=x\nrequest.timeout.ms=1000\ndefault.api.timeout.ms=2000": nil,
		"acks=all\nlinger.ms=5\nssl.provider=x": {
			"without security.protocol=SSL or SASL_SSL the properties ssl.* have no effect",
			"these properties are not used: linger.ms, ssl.provider",
			"have no dot are not used: 1",
		},
		"sasl.mechanism=PLAIN":               {"without security.protocol=SASL_PLAINTEXT or SASL_SSL the properties sasl.* have no effect", "not used: sasl.mechanism"},
		"bootstrap.servers=a:1":              {"bootstrap.servers has no effect"},
		"security.protocl=SSL":               {"not used: security.protocl"},
		"a.b=x\n username=\"hunter2\"\n;":    {"not used: a.b", "have no dot are not used: 2"},
		"a.b=x\nhunter2\nhunter2hunter2 = y": {"not used: a.b", "have no dot are not used: 2"},
	} {
		c, err := read(t, text).Connection()
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		notes := strings.Join(c.Notes, "\n")
		for _, w := range want {
			if !strings.Contains(notes, w) {
				t.Errorf("%q: notes are %q, want %q", text, notes, w)
			}
		}
		if len(c.Notes) != len(want) || strings.Contains(notes, "hunter2") {
			t.Errorf("%q: notes are %q", text, c.Notes)
		}
	}
}
