package clientconfig

import (
	"errors"
	"strings"
)

// A loginModule is an entry of a JAAS configuration.
type loginModule struct {
	class   string
	options map[string]string
}

// What is wrong. No error repeats what stands there, which may be a password.
var (
	errJAASEnd    = errors.New("it ends too early: want `module required name=\"value\" …;`, with the semicolon")
	errJAASFlag   = errors.New("behind the name of the login module stands no control flag: want required")
	errJAASQuote  = errors.New("a quote is not closed")
	errJAASOption = errors.New("an option is not name=\"value\"")
	errJAASMore   = errors.New("something follows the semicolon: want one login module")
)

// parseJAAS reads `module flag name="value" …;`, the value of sasl.jaas.config.
func parseJAAS(text string) (loginModule, error) {
	var m loginModule
	l := jaasLexer{text}
	class, err := l.next()
	if err != nil {
		return m, err
	}
	flag, err := l.next()
	if err != nil {
		return m, err
	}
	switch strings.ToLower(flag.text) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, errJAASFlag
	}
	m.class, m.options = class.text, map[string]string{}
	for {
		name, err := l.next()
		if err != nil {
			return m, err
		}
		if name.is(";") {
			break
		}
		equals, err := l.next()
		if err != nil {
			return m, err
		}
		value, err := l.next()
		if err != nil {
			return m, err
		}
		if name.mark || !equals.is("=") || value.mark {
			return m, errJAASOption
		}
		m.options[name.text] = value.text
	}
	if _, err := l.next(); err == nil {
		return m, errJAASMore
	}
	return m, nil
}

// jaasToken is a word, a quoted string, or a mark.
type jaasToken struct {
	text string
	mark bool // = or ;
}

func (t jaasToken) is(mark string) bool { return t.mark && t.text == mark }

// jaasLexer is what is left of the text.
type jaasLexer struct{ rest string }

func (l *jaasLexer) next() (jaasToken, error) {
	l.rest = strings.TrimLeft(l.rest, " \t\r\n\f")
	if l.rest == "" {
		return jaasToken{}, errJAASEnd
	}
	switch first := l.rest[0]; first {
	case '=', ';':
		l.rest = l.rest[1:]
		return jaasToken{string(first), true}, nil
	case '"', '\'':
		return l.quoted(first)
	}
	end := strings.IndexAny(l.rest, " \t\r\n\f=;\"'")
	if end < 0 {
		end = len(l.rest)
	}
	word := l.rest[:end]
	l.rest = l.rest[end:]
	return jaasToken{word, false}, nil
}

// quoted reads a string; a backslash takes the next character as it is.
func (l *jaasLexer) quoted(quote byte) (jaasToken, error) {
	var b strings.Builder
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == quote:
			l.rest = l.rest[i+1:]
			return jaasToken{b.String(), false}, nil
		case c == '\\' && i+1 < len(l.rest):
			i++
			b.WriteByte(unescaped(l.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return jaasToken{}, errJAASQuote
}

// unescaped is what a character behind a backslash stands for.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	}
	return c
}
