package statestore

import (
	"encoding/binary"
	"fmt"
)

// Identity says for whom the state of a task is kept. State on disk is right only for the changelogs it was made from:
// the same names in another cluster, or a topic that was deleted and created again, hold something else.
type Identity struct {
	ApplicationID string
	ClusterID     string
	// Changelogs are the ids of the changelog topics by store name.
	Changelogs map[string]string
}

// IdentityKind is what differs in an [IdentityError].
type IdentityKind string

const (
	// ApplicationMismatch: the state belongs to another application.
	ApplicationMismatch IdentityKind = "application id"
	// ClusterMismatch: the state belongs to another Kafka cluster.
	ClusterMismatch IdentityKind = "cluster id"
	// ChangelogMismatch: the changelog topic was deleted and created again.
	ChangelogMismatch IdentityKind = "changelog topic id"
	// FormatMismatch: the state was written by a version with another local layout.
	FormatMismatch IdentityKind = "format version"
	// KindMismatch: the store was of another kind when the state was written.
	KindMismatch IdentityKind = "store kind"
)

// IdentityError says that local state was made for something else: what differs, where, and what to do.
type IdentityError struct {
	What  IdentityKind
	Dir   string // the directory, "" in memory
	Store string // the store, for ChangelogMismatch and KindMismatch
	Have  string // what the state was written for
	Want  string // what it is opened for
}

// Rebuildable says that the state is of no use to anybody any more: it may be moved aside with [RenameAside] and
// restored. Otherwise it may be somebody else's, and only a person can decide.
func (e *IdentityError) Rebuildable() bool {
	return e.What != ApplicationMismatch && e.What != ClusterMismatch
}

func (e *IdentityError) Error() string {
	about := ""
	if e.Store != "" {
		about = fmt.Sprintf(" of store %q", e.Store)
	}
	where := "state"
	if e.Dir != "" {
		where = "state in " + e.Dir
	}
	return fmt.Sprintf("%s: %s%s is %q, not %q: %s", where, e.What, about, e.Have, e.Want, e.advice())
}

func (e *IdentityError) advice() string {
	switch e.What {
	case ApplicationMismatch:
		return "give each application a state directory of its own"
	case ClusterMismatch:
		return "use the state directory of this cluster, or remove this one to restore from this cluster's changelogs"
	case ChangelogMismatch:
		return "the topic was created again, so the local copy is obsolete: it has to be removed and restored"
	case FormatMismatch:
		return "it was written by another version: remove it, it is restored from the changelogs"
	default:
		return "give the changed store a new name, or reset the application"
	}
}

// check compares the meta rows with whom the state is opened for.
func (m *meta) check(id Identity, specs []Spec) error {
	if m.empty {
		return nil
	}
	differs := func(what IdentityKind, store, have, want string) error {
		if have == "" || want == "" || have == want {
			return nil
		}
		return &IdentityError{What: what, Dir: m.dir, Store: store, Have: have, Want: want}
	}
	if err := differs(FormatMismatch, "", fmt.Sprint(m.format), fmt.Sprint(formatVersion)); err != nil {
		return err
	}
	if err := differs(ApplicationMismatch, "", m.application, id.ApplicationID); err != nil {
		return err
	}
	if err := differs(ClusterMismatch, "", m.cluster, id.ClusterID); err != nil {
		return err
	}
	for _, spec := range specs {
		row, known := m.stores[spec.Name]
		if !known {
			continue
		}
		if err := differs(KindMismatch, spec.Name, row.kind.String(), spec.Kind.String()); err != nil {
			return err
		}
		err := differs(ChangelogMismatch, spec.Name, m.changelogs[row.id], id.Changelogs[spec.Name])
		if err != nil {
			return err
		}
	}
	return nil
}

// stageIdentity records what is known now and was not before.
func (m *meta) stageIdentity(b *Batch, id Identity) {
	if m.empty {
		b.Set(metaKey(metaFormat), binary.BigEndian.AppendUint32(nil, formatVersion))
	}
	if m.application == "" && id.ApplicationID != "" {
		b.Set(metaKey(metaApplication), []byte(id.ApplicationID))
	}
	if m.cluster == "" && id.ClusterID != "" {
		b.Set(metaKey(metaCluster), []byte(id.ClusterID))
	}
}

func (m *meta) stageChangelog(b *Batch, id uint16, topicID string) {
	if topicID != "" && m.changelogs[id] == "" {
		b.Set(metaStoreKey(metaChangelog, id), []byte(topicID))
	}
}
