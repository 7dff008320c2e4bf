package membership

import (
	"strings"
	"testing"

	"github.com/millrace-io/millrace/membership/assign"
)

func TestALargePlanDoesNotFloodTheLog(t *testing.T) {
	var m Member
	m.logPlan(assign.Plan{Moves: make([]assign.Move, toldMoves)})
	if len(m.actions) != toldMoves {
		t.Errorf("%d moves are %d lines, want a line each", toldMoves, len(m.actions))
	}
	m = Member{}
	m.logPlan(assign.Plan{Moves: make([]assign.Move, 1000)})
	if len(m.actions) != toldMoves+1 {
		t.Fatalf("1000 moves are %d lines, want %d and one for the rest", len(m.actions), toldMoves)
	}
	if last := m.actions[toldMoves].(Log).Text; !strings.Contains(last, "and 980 more") {
		t.Errorf("the last line is %q", last)
	}
}
