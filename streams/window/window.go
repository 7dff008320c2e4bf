// Package window holds the arithmetic of time windows: which windows a timestamp falls into, and when a window is
// closed. It has no state and reads no clock; times are Kafka record timestamps in milliseconds.
//
// Windows are aligned to the epoch, start inclusive, end exclusive. A window accepts records while its end is greater
// than stream time minus the grace, and is closed for good afterwards; stream time is the greatest timestamp that the
// operator has seen, whatever the key. There is no default grace: how long to wait for late records is a decision, so
// a definition without one does not type-check.
//
// This package is a promise to users.
package window

import (
	"fmt"
	"math"
	"time"
)

// Key is a grouping key in one window.
type Key[K any] struct {
	Key K
	// Start and End are milliseconds since the epoch; End is exclusive.
	Start, End int64
}

// StartTime returns the window's inclusive start.
func (k Key[K]) StartTime() time.Time { return time.UnixMilli(k.Start) }

// EndTime returns the window's exclusive end.
func (k Key[K]) EndTime() time.Time { return time.UnixMilli(k.End) }

// String returns "[key@start/end]", the form Kafka prints.
func (k Key[K]) String() string { return fmt.Sprintf("[%v@%d/%d]", k.Key, k.Start, k.End) }

// Def is a complete definition of time windows; the zero value is invalid. Make one with [Tumbling] or [Hopping].
type Def struct {
	size, advance, grace time.Duration
}

// Ungraced is a definition that still lacks its grace.
type Ungraced struct {
	size, advance time.Duration
}

// Tumbling defines windows of the given size that follow each other without gap or overlap.
func Tumbling(size time.Duration) Ungraced { return Ungraced{size: size, advance: size} }

// Hopping defines windows of the given size that start at every multiple of advance, and so overlap when advance is
// smaller than size.
func Hopping(size, advance time.Duration) Ungraced { return Ungraced{size: size, advance: advance} }

// Grace completes the definition: how long after its end, in stream time, a window still accepts records. Zero is
// allowed and closes a window as soon as stream time reaches its end.
func (u Ungraced) Grace(grace time.Duration) Def {
	return Def{size: u.size, advance: u.advance, grace: grace}
}

// Validate reports which field is out of its bounds. Windows have millisecond resolution.
func (d Def) Validate() error {
	switch {
	case d.size < time.Millisecond:
		return fmt.Errorf("window size is %v, must be at least 1ms", d.size)
	case d.advance < time.Millisecond || d.advance > d.size:
		return fmt.Errorf("window advance is %v, must be between 1ms and the window size %v", d.advance, d.size)
	case d.grace < 0:
		return fmt.Errorf("window grace is %v, must not be negative", d.grace)
	}
	for _, part := range []struct {
		name  string
		value time.Duration
	}{{"size", d.size}, {"advance", d.advance}, {"grace", d.grace}} {
		if part.value%time.Millisecond != 0 {
			return fmt.Errorf("window %s is %v, must be a whole number of milliseconds", part.name, part.value)
		}
	}
	return nil
}

// Size returns the length of a window.
func (d Def) Size() time.Duration { return d.size }

// Advance returns the distance between the starts of two windows.
func (d Def) Advance() time.Duration { return d.advance }

// GracePeriod returns how long a window accepts records after its end.
func (d Def) GracePeriod() time.Duration { return d.grace }

// Retention returns how long a store must keep a window after its start so that late records find it.
func (d Def) Retention() time.Duration { return d.size + d.grace }

// Calc returns the definition as plain milliseconds for the record path.
func (d Def) Calc() Calc {
	return Calc{Size: d.size.Milliseconds(), Advance: d.advance.Milliseconds(), Grace: d.grace.Milliseconds()}
}

// Calc is window arithmetic in milliseconds.
type Calc struct{ Size, Advance, Grace int64 }

// First returns the start of the earliest window that contains ts, which must not be negative. The others follow at
// distances of Advance, up to and including [Calc.Last]: compare for equality with it, because start+Advance of a
// hostile timestamp may overflow.
func (c Calc) First(ts int64) int64 {
	earliest := max(0, ts-c.Size+c.Advance)
	return earliest - earliest%c.Advance
}

// Last returns the start of the latest window that contains ts, which must not be negative.
func (c Calc) Last(ts int64) int64 { return ts - ts%c.Advance }

// Open reports whether the window that begins at start still accepts records at the given stream time.
func (c Calc) Open(start, streamTime int64) bool {
	return End(start, c.Size) > streamTime-c.Grace
}

// End returns the exclusive end of a window, the greatest int64 if it lies beyond that.
func End(start, size int64) int64 {
	if start > math.MaxInt64-size {
		return math.MaxInt64
	}
	return start + size
}
