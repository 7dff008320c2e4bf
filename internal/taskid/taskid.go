// Package taskid names a task: a stable sub-topology name and a partition.
//
// The name is the same in directories, on the wire, in logs and over REST (design: a task id never depends on the
// order in which a topology was written down). It is a package of its own because every layer needs it and none
// of them should import another only for a name.
package taskid

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// ID names one task. IDs are comparable and may be map keys.
type ID struct {
	Subtopology string
	Partition   int32
}

// String returns "<sub-topology>_<partition>", the form used for directories and on the wire.
func (id ID) String() string {
	return id.Subtopology + "_" + strconv.Itoa(int(id.Partition))
}

// Compare orders by sub-topology, then by partition.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Subtopology, other.Subtopology), cmp.Compare(id.Partition, other.Partition))
}

// Parse is the inverse of [ID.String]. The partition is what follows the last underscore.
func Parse(s string) (ID, error) {
	cut := strings.LastIndexByte(s, '_')
	if cut <= 0 {
		return ID{}, fmt.Errorf("task id %q: want <sub-topology>_<partition>", s)
	}
	partition, err := strconv.ParseUint(s[cut+1:], 10, 31)
	if err != nil {
		return ID{}, fmt.Errorf("task id %q: partition %q is not a number from 0 to 2147483647", s, s[cut+1:])
	}
	return ID{Subtopology: s[:cut], Partition: int32(partition)}, nil
}
