package groupdiff

// byHand are sequences for the rules that matter most, one line a request: kind, client, and options. A client whose name
// is one of statics sends its instance id.
var byHand = []struct{ name, text string }{
	{"a static follower restarts in Stable", base + `
		join b none
		sync b
		heartbeat b identity=old
		sync b identity=old
		commit b identity=old
		txn-commit b identity=old
		leave b identity=old member
		join b identity=old
		heartbeat a
		describe a`},
	{"a static leader restarts, and is told to skip the assignment", base + `
		join a none
		sync a
		heartbeat a
		heartbeat b
		heartbeat a identity=old`},
	{"a static leader restarts with an old client", base + `
		join a none version=8
		sync a
		join a none version=5
		sync a
		heartbeat b`},
	{"a restart with another protocol rebalances", base + `
		join b none offers=roundrobin
		heartbeat a
		join a
		sync a offers=roundrobin
		sync b offers=roundrobin`},
	{"a restart in Completing", `
		join a none
		join b none
		join a
		sync b
		join b none
		sync a
		join a
		sync a
		sync b`},
	{"a restart in Preparing fences the parked Join", base + `
		join c none
		join b
		join b none
		heartbeat b identity=old
		join a
		sync a
		sync b
		sync c`},
	{"a batch removal", base + `
		join c none
		join a
		join b
		sync a
		sync b
		sync c
		leave a with=b
		join c
		sync c
		heartbeat a
		join a none
		join c
		sync c`},
	{"the same instance twice in one batch", base + `
		leave b with=b
		describe a
		join a
		sync a`},
	{"everybody leaves", base + `
		leave a with=b
		describe a
		list a
		delete a
		describe a version=6
		join a none
		sync a`},
	{"a dynamic member comes, and leaves with its id only", base + `
		join x none
		join x
		join a
		join b
		sync a
		sync x
		sync b
		leave x member version=1
		join a
		join b
		sync a
		sync b`},
	{"a handed out id leaves a Stable group", base + `
		join x none
		leave x member
		describe a
		heartbeat a`},
	{"offsets of a transaction", base + `
		txn-commit a offset=7
		fetch a stable version=7
		fetch a version=7
		fetch a version=9 stable
		end-txn a commit
		fetch a stable version=7
		txn-commit b offset=9 simple
		end-txn b
		fetch a version=8`},
	{"offsets of a transaction by topic id", base + `
		txn-commit a version=6 offset=7
		txn-commit a version=6 identity=bogus
		txn-commit a version=6 shift=1
		fetch a stable version=10
		end-txn a commit
		fetch a stable version=10
		leave a with=b
		txn-commit a version=6 offset=8
		txn-commit a version=6 offset=8 simple
		end-txn a
		delete a version=3
		delete a version=3`},
	{"requests for a group that does not exist", `
		sync a
		heartbeat a
		leave a version=2
		leave a
		describe a version=5
		describe a version=6
		delete a version=3
		offset-delete a
		fetch a version=7
		fetch a all version=10
		commit a offset=1 version=8
		commit a offset=1 version=10
		txn-commit a identity=bogus
		join a identity=bogus
		list a
		commit x simple offset=3
		list x
		describe x version=6
		join a none version=5
		sync a version=3`},
	{"commits with every identity", base + `
		commit a offset=1
		commit a offset=2 shift=-1
		commit a offset=2 shift=1
		commit a identity=bogus
		commit x identity=bogus
		commit a simple offset=3
		commit a offset=4 long
		fetch a all version=9
		fetch a all version=10
		commit a offset=5 version=10
		fetch a version=10
		offset-delete a
		leave a with=b
		offset-delete a
		commit a simple offset=6
		fetch a all version=8
		delete a
		fetch a all version=8
		commit a offset=1 version=8
		commit a offset=1 version=9`},
	{"several groups in one request", base + `
		commit a offset=4
		fetch a version=8 more
		fetch a version=10 more all
		fetch x version=9 more stable
		txn-commit a version=6 offset=9
		fetch a version=10 more stable
		fetch a version=9 more stable all
		end-txn a commit
		describe a more version=5
		describe a more version=6
		delete a more version=2
		leave a with=b of=b version=5
		delete a more version=3
		describe a more version=6`},
	{"a batch of right, wrong and missing ids", base + `
		join c none
		join a
		join b
		sync a
		sync b
		sync c
		leave a identity=bogus member with=b of=c
		leave x member with=c of=b version=4
		leave x identity=bogus member with=b of=b version=3
		join a
		join c
		sync a
		sync c
		leave a member with=c version=5`},
	{"joins and syncs that no group takes", base + `
		join c none type=connect
		join c none type=null
		join c none offers=
		join c none session=1
		join c none session=1800001
		join b none type=connect
		join b type=connect
		sync b type=connect
		sync b type=null
		sync b type=null version=4
		sync b offers=roundrobin
		heartbeat a
		list a types=Classic
		list a types=consumer`},
	{"a group of another type that only waits for an id", `
		join a none type=connect
		sync a type=connect
		join x none type=connect
		leave a
		describe a
		join b none
		join a
		join a type=connect
		join x type=connect offers=sticky
		sync x type=connect offers=sticky`},
	{"the leader asks for a rebalance, a follower asks again", base + `
		join b
		join a
		heartbeat b
		join b
		sync a
		sync b
		join b metadata=new
		join a
		sync a
		sync b`},
	{"a parked request is repeated", base + `
		join c none
		join b
		join b
		join a
		sync b
		sync b
		sync a
		sync c`},
}

// base brings a and b into one Stable group.
const base = `
		join a none
		sync a
		join b none
		join a
		sync a
		sync b`
