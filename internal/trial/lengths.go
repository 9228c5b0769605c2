package trial

import (
	"context"
	"time"

	"prony.example/record"
	"prony.example/stats"
)

// Lengths of slices; see docs/decisions/0051-slices.md for how they were chosen.
const (
	leadTurns, leastLead     = 5, 10 * time.Millisecond
	windowTurns, leastWindow = 10, 20 * time.Millisecond
	// inexact multiplies the shortest lengths if CPU times lack up to a tick at both ends of a
	// window: the scatter of ratios of CPU per request by that halves.
	inexact    = 2
	leastTurns = 7 // of a window, if longer ones would take too long
	// LongestSlice is the maximum mean length of slices: longer ones leave too few rounds.
	LongestSlice = 2 * time.Second
	// Within rounds, a target is stopped for at most longestStop, because supervisors replace
	// workers that are silent for 5 s. Then it runs for wakeTime between two slices of others.
	longestStop, wakeTime = 4 * time.Second, 100 * time.Millisecond
	// Starts have at least leastRounds, or fewestRounds if leastRounds would take more than twice
	// as long as planned.
	leastRounds, fewestRounds = 7, 4
	// Number and window of the pilot slices of each target, whose median rates decide the lengths.
	pilotSlices, pilotWindow = 5, 60 * time.Millisecond
)

// lengths sets lead-in, window and number of rounds before the first counted slice, by the rate of
// each target in pilot slices. They are equal for all targets. If slices are impossible, the number
// of rounds is 0. With an error, failed is the index of the target that caused it.
func (s *start) lengths(ctx context.Context) (failed int, err error) {
	longer := time.Duration(1)
	if s.cores == nil {
		longer = inexact
	}
	s.LeadInNs, s.WindowNs = int64(longer*leastLead), int64(pilotWindow)
	perS := make([][]float64, len(s.sides))
	for range pilotSlices {
		for _, i := range s.rng.Perm(len(s.sides)) {
			x, err := s.closedSlice(ctx, i)
			if err != nil {
				return i, err
			}
			perS[i] = append(perS[i], float64(x.Requests)/float64(x.ClosedNs-x.OpenedNs)*1e9)
		}
	}
	turn := time.Duration(0)
	for i, f := range s.sides {
		rate := stats.Median(perS[i])
		if rate <= 0 { // its own window shows this, too
			s.WindowNs = 0
			return 0, nil
		}
		connections := float64(sliced(f.trial.Loads).Connections)
		turn = max(turn, time.Duration(connections/rate*1e9))
	}
	planned := s.sides[0].trial.Sliced
	lead, window := closedLengths(turn, min(LongestSlice, planned/leastRounds), longer)
	s.LeadInNs, s.WindowNs, s.TurnNs = int64(lead), int64(window), int64(turn)
	if slice := time.Duration(s.MeanNs()); slice <= LongestSlice {
		s.Rounds = rounds(slice, planned)
	}
	return 0, nil
}

// closedLengths returns lead-in and window for a turn of the slowest target, with at most the given
// mean length of slices if windows of leastTurns allow it. A slower machine makes turns longer, and
// windows of a few turns less are better than no slices at all, or than rounds that take longer
// than planned. Longer multiplies the shortest lengths.
func closedLengths(turn, most, longer time.Duration) (lead, window time.Duration) {
	lead = max(longer*leastLead, leadTurns*turn)
	for turns := windowTurns; ; turns-- {
		window = max(longer*leastWindow, time.Duration(turns)*turn)
		x := record.SideBySide{LeadInNs: int64(lead), WindowNs: int64(window), TurnNs: int64(turn)}
		if time.Duration(x.MeanNs()) <= most || turns == leastTurns {
			return lead, window
		}
	}
}

// rounds returns the number of rounds of slices with this mean length, for a planned time per
// target. Fewer rounds are better than rounds that take several times as long as planned.
func rounds(slice, planned time.Duration) int {
	return max(int(planned/slice), min(leastRounds, int(2*planned/slice)), fewestRounds)
}
