package coordinator

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever writes scripts may call things as the protocol does, and a scenario whatever they like.
func TestSpellingsOfTheProtocol(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spelling.txt")
	if err := os.WriteFile(file, []byte(`scenario offset-commit groupMaxSize=5
----
...

JoinGroup group_instance_id=a sessionTimeoutMs=10s rebalance_timeout_ms=30s
----
...

advance 3s
----
...

SyncGroup memberId=a-1 groupInstanceId=a generation_id=1 protocol_name=range assignments=(a-1:A)
----
...

TxnOffsetCommit transactional_id=T producer_id=7 producer_epoch=2 member_id=a-1 group_instance_id=a generation_id=1 offsets=(t/0:5)
----
...

EndTxn commit producer-id=7 producer_epoch=2
----
...

OffsetFetch require_stable partitions=(t/0)
----
...

expect offsets=(t/0:5)
----
ok

Heartbeat memberId=a-1 generation=1
----
...

settings registration_timeout=15m expected_instance_ids=(a,b) refuse_unexpected target_size=1 spare_session=6s
----
...

raw_record key=00
----
...
`), 0o600); err != nil {
		t.Fatal(err)
	}
	runScript(t, file)
}
