package statestore

// insertEvictions is how many entries the clock hand may look at for each insertion: more than one, so that the cache
// comes back under its budget after a commit made many entries clean at once, and few, so that no insertion is slow.
const insertEvictions = 8

// evict removes clean entries while they are over budget, looking at no more than steps entries. It is the clock
// algorithm: an entry that was used since the hand last passed gets a second round. New entries begin unused, so one
// pass over many keys does not push out those that are used again and again.
func (o *overlay) evict(steps int) {
	for ; steps > 0 && o.cleanBytes > o.cleanLimit && o.next > 0; steps-- {
		i := o.hand
		if o.hand++; o.hand >= o.next {
			o.hand = 0
		}
		switch e := o.at(i); {
		case !e.is(flagLive) || e.is(flagDirty) || i == o.last:
		case e.is(flagUsed):
			e.flags &^= flagUsed
		default:
			o.remove(i)
		}
	}
}

// dropClean empties the overlay of clean entries, for when the engine was written past it.
func (o *overlay) dropClean() {
	if o.cleanBytes == 0 {
		return
	}
	for i := range o.next {
		if e := o.at(i); e.is(flagLive) && !e.is(flagDirty) {
			o.remove(i)
		}
	}
}
