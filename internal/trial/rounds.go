package trial

import (
	"time"

	"prony.example/internal/base/clock"
)

// reportEvery is the minimum time between two reports of rounds.
const reportEvery = 500 * time.Millisecond

// reportRounds reports that rounds of slices begin. It returns a function that reports the number
// of finished rounds, at most twice a second. Call it only between rounds: all targets are stopped
// then, so that the work of a report is in no slice.
func (s *start) reportRounds(step string, rounds int, slice time.Duration) (done func(int)) {
	event := Event{Trial: s.sides[0].trial.ID, Step: step, Rounds: rounds,
		Expect: time.Duration(rounds*len(s.sides)) * slice}
	s.lab.tell(event)
	last := clock.Mono()
	return func(round int) {
		if now := clock.Mono(); now-last >= int64(reportEvery) || round == rounds {
			last = now
			event.Round = round
			s.lab.tell(event)
		}
	}
}
