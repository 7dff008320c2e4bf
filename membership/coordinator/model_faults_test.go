package coordinator

import "slices"

// append holds appends, or lets go of one or of all.
func (m *model) append() error {
	if !m.held {
		m.held = true
		return m.do("hold")
	}
	switch m.rnd.IntN(3) {
	case 0:
		m.held = false
		return m.do("release")
	case 1:
		if h := m.anyHeld(); h != nil {
			return m.do("release append=%d", h.append.ID)
		}
	case 2:
		if h := m.anyHeld(); h != nil && !h.written {
			m.failed = true
			return m.do("fail append=%d error=%s", h.append.ID, []string{"REQUEST_TIMED_OUT", "NOT_LEADER_FOR_PARTITION", "MESSAGE_TOO_LARGE"}[m.rnd.IntN(3)])
		}
	}
	return nil
}

// anyHeld chooses an append whose outcome may be told now: those of transactions keep their order.
func (m *model) anyHeld() *heldAppend {
	if len(m.w.held) == 0 {
		return nil
	}
	at := m.rnd.IntN(len(m.w.held))
	if txn := slices.IndexFunc(m.w.held, func(h heldAppend) bool { return h.append.Txn != nil }); txn >= 0 {
		at = min(at, txn)
	}
	return &m.w.held[at]
}

// reload restarts the coordinator, with or without a word. Appends that are under way are lost or stored.
func (m *model) reload() error {
	if len(m.w.held) > 0 && m.rnd.IntN(2) == 0 {
		if err := m.do("write"); err != nil {
			return err
		}
	}
	lost := slices.ContainsFunc(m.w.held, func(h heldAppend) bool { return !h.written })
	if lost || m.failed || m.w.cfg.Profile == Kafka {
		for _, c := range m.clients {
			c.excused = true
		}
	}
	m.failed, m.generation = false, 0
	m.reloads++
	if m.rnd.IntN(2) == 0 {
		return m.do("reload crash")
	}
	return m.do("reload")
}
