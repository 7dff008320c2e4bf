// Package codec turns what a member tells the leader (its subscription) and what the leader tells a member (its
// assignment) into bytes and back. It is internal to this project.
//
// # Format
//
// Both messages start with a header: two magic bytes, a kind, the writer's version and the lowest version a reader
// needs. Fields follow as (tag, length, content), tags ascending. A reader skips tags that it does not know, so a
// newer writer may add a field without raising the minimum version; it raises the minimum only when an old reader
// would misunderstand the rest, and the old reader then says so by a [VersionError]. Fields that hold their zero value
// are left out. The same value always gives the same bytes: a group coordinator compares bytes to tell whether a
// member that joins again has changed.
//
// # Envelope
//
// The bytes travel as the user data of Kafka's ConsumerProtocol, so that Kafka's own tools can show topics and
// partitions of our members; see [EncodeMember] and [EncodeGrant].
//
// # What is not relied upon
//
// Nothing is trusted: lengths and counts are checked against what is there, and bytes of another application decode
// to an error, never to a panic or to a large allocation. A leader that cannot read a member's user data still has a
// member to serve.
package codec
